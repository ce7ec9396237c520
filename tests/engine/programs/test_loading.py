"""Where a program begins, and what its functions may look like."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import ArtifactError
from engine.programs.loading import load, opened
from fixtures import programs

BROKEN = {"tides/__init__.py": "", "tides/broken.py": "def main():\n    return 1 / 0\n"}


@pytest.fixture(autouse=True)
def _tides_are_forgotten() -> Iterator[None]:
    """Each test has a package of that name of its own."""
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tides", "job")]:
        del sys.modules[name]


@pytest.fixture
def code(tmp_path: Path) -> Path:
    return programs.written(tmp_path)


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        (None, "tides"),
        ("tides", "tides"),
        ("tides.__main__", "tides"),
        ("tides.jobs:main", "tides"),
        ("tides.jobs:environment", "tides"),
        ("tides.jobs:build", "build"),
    ],
)
def test_every_form_of_entry_gives_the_job(code: Path, entry: str | None, name: str) -> None:
    before = list(sys.path), sys.argv, sys.modules["__main__"]
    graph = load(code, entry, ["out"], {})
    assert graph.name == name
    assert [one.uid for vertex in graph.vertices for one in vertex.operators][-1] == "out"
    assert (list(sys.path), sys.argv, sys.modules["__main__"]) == before


def test_a_job_file_begins_where_it_is_told_to(tmp_path: Path) -> None:
    text = programs.JOBS.replace(
        "from .heights import doubled", "def doubled(row):\n    return row"
    )
    (tmp_path / "job.py").write_text(text)
    assert load(tmp_path / "job.py", "job:environment", ["out"], {}).name == "tides"


def test_a_setting_names_the_job_of_a_function_that_is_given_its_environment(code: Path) -> None:
    assert load(code, "tides.jobs:build", ["out"], {"pipeline.name": "high"}).name == "high"


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("tides.jobs", "module tides.jobs submits no job; end it with env.execute()"),
        ("tides.jobs:nothing", "entry tides.jobs:nothing gives no job: got int; call env.execute"),
        ("tides.jobs:greedy", "entry tides.jobs:greedy needs more than it can be given: got par"),
        ("tides.jobs:CONSTANT", "entry tides.jobs:CONSTANT is no function: got int; check its"),
        ("tides.jobs:absent", "entry tides.jobs:absent is no function: got NoneType"),
        ("tides.absent", "module tides.absent cannot be run: it is not there"),
        (
            "tides.absent:main",
            "job file raised ModuleNotFoundError: No module named 'tides.absent'",
        ),
        ("../tides", r"entry is not package.module or package.module:function: got '../tides'"),
    ],
)
def test_an_entry_that_is_none_is_one_sentence(code: Path, entry: str, sentence: str) -> None:
    with pytest.raises(ArtifactError) as refused:
        load(code, entry, ["out"], {})
    assert str(refused.value).startswith(sentence)


def test_what_a_package_raises_is_told_with_its_place(tmp_path: Path) -> None:
    code = programs.written(tmp_path, BROKEN)
    with pytest.raises(ArtifactError, match=r"ZeroDivisionError.*: tides/broken.py, line 2; corr"):
        load(code, "tides.broken:main", [], {})


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"a.py": "", "b.py": ""}, "a.py, b.py"),
        ({"notes.txt": ""}, "no module at its top"),
        ({"a/__init__.py": "", "b/__main__.py": "", "c/__main__.py": ""}, "b, c"),
    ],
)
def test_a_folder_that_may_begin_anywhere_is_refused(
    tmp_path: Path, files: dict[str, str], found: str
) -> None:
    with pytest.raises(ArtifactError, match=f"does not say where it begins: .*, but {found}; name"):
        load(programs.written(tmp_path, files), None, [], {})


def test_an_archive_is_unpacked_for_as_long_as_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / "tides.zip").write_bytes(programs.zipped(programs.FILES))
    with opened(str(tmp_path / "tides.zip")) as (code, entry):
        assert load(code, entry, ["out"], {}).name == "tides"
    assert not code.exists()
