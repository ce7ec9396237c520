"""Which packages a program asks for, and in which words it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import ArtifactError
from engine.programs.requirements import of_file, of_folder
from fixtures import programs

SCRIPT = """\
#!/usr/bin/env python
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "rich>=13",
#   "httpx[http2]",
# ]
# ///
import rich
"""


def script(tmp_path: Path, text: str) -> Path:
    (tmp_path / "job.py").write_text(text)
    return tmp_path / "job.py"


def test_a_job_file_lists_them_in_its_script_metadata(tmp_path: Path) -> None:
    assert of_file(script(tmp_path, SCRIPT)) == ("rich>=13", "httpx[http2]")


@pytest.mark.parametrize(
    "text", ["import rich\n", "# /// other\n# a = 1\n# ///\n", "# /// script\n"]
)
def test_a_job_file_without_metadata_needs_nothing(tmp_path: Path, text: str) -> None:
    assert of_file(script(tmp_path, text)) == ()


@pytest.mark.parametrize("given", ["dependencies = 7", "dependencies = [7]", "dependencies = ["])
def test_metadata_of_another_form_is_one_sentence(tmp_path: Path, given: str) -> None:
    with pytest.raises(ArtifactError, match=r"script metadata of job.py") as refused:
        of_file(script(tmp_path, f"# /// script\n# {given}\n# ///\n"))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("given", ['">=3.99"', '"<3"'])
def test_a_job_file_for_another_python_is_refused_in_one_sentence(
    tmp_path: Path, given: str
) -> None:
    wanted = given.strip('"')
    with pytest.raises(ArtifactError, match=f"job.py requires Python {wanted}, this engine runs 3"):
        of_file(script(tmp_path, f"# /// script\n# requires-python = {given}\n# ///\n"))


@pytest.mark.parametrize("given", ['"soon"', "3", "[]"])
def test_a_python_that_is_none_is_one_sentence(tmp_path: Path, given: str) -> None:
    with pytest.raises(ArtifactError, match=r"job.py has a requires-python that is none: got"):
        of_file(script(tmp_path, f"# /// script\n# requires-python = {given}\n# ///\n"))


def test_a_folder_lists_them_in_requirements_txt(tmp_path: Path) -> None:
    text = "# ours\nrich>=13 # pretty\n\nheadwater\nhttpx==0.28 \\\n    --hash=sha256:0a\n"
    programs.written(tmp_path, {"requirements.txt": text, "__main__.py": SCRIPT})
    assert of_folder(tmp_path) == ("rich>=13", "httpx==0.28 --hash=sha256:0a")


def test_the_main_file_of_a_folder_may_list_them_too(tmp_path: Path) -> None:
    assert of_folder(programs.written(tmp_path, {"__main__.py": SCRIPT}))[0] == "rich>=13"
    assert of_folder(programs.written(tmp_path / "other")) == ()


def test_a_wheel_lists_them_in_its_metadata(tmp_path: Path) -> None:
    about = "Name: tides\nRequires-Dist: rich>=13\nRequires-Dist: headwater (>=0.1)\n\nLong\n"
    folder = programs.written(tmp_path, {"tides-1.0.dist-info/METADATA": about})
    assert of_folder(folder) == ("rich>=13",)


def test_a_wheel_for_another_python_is_refused(tmp_path: Path) -> None:
    about = "Name: tides\nRequires-Python: <3.11\n\nLong\n"
    folder = programs.written(tmp_path, {"tides-1.0.dist-info/METADATA": about})
    with pytest.raises(ArtifactError, match=r"METADATA requires Python <3\.11"):
        of_folder(folder)


@pytest.mark.parametrize(
    "line",
    [
        "-r /etc/passwd",
        "--index-url elsewhere",
        "-e .",
        "./local.whl",
        "wheels/local.whl",
        "rich @ file:///etc/passwd",
        "=1.0",
    ],
)
def test_options_and_paths_are_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ArtifactError, match=r"requirements.txt has a line that names no package"):
        of_folder(programs.written(tmp_path, {"requirements.txt": line}))
