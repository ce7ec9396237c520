"""What a client sends of a program that lies on its disk."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from engine.errors import ArtifactError
from engine.programs import packing
from engine.programs.packing import Packed, locate, pack
from fixtures import programs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    beside = {"requirements.txt": "rich", "other.py": "", "single.py": ""}
    left_out = {".git/config": "", "venv/pyvenv.cfg": "", "tides/__pycache__/a.pyc": "", ".env": ""}
    return programs.written(tmp_path / "code", programs.FILES | beside | left_out)


def names(packed: Packed) -> set[str]:
    return set(zipfile.ZipFile(io.BytesIO(packed.content)).namelist())


def test_a_folder_goes_without_what_is_no_code(folder: Path) -> None:
    packed = pack(locate(str(folder)))
    assert packed.filename == "code.zip"
    assert names(packed) == {*programs.FILES, "requirements.txt", "other.py", "single.py"}


def test_a_module_goes_with_its_package_and_its_requirements(folder: Path) -> None:
    packed = pack(locate("tides.jobs:build", here=folder))
    assert (packed.filename, packed.entry) == ("tides.zip", "tides.jobs:build")
    assert names(packed) == {*programs.FILES, "requirements.txt"}
    assert names(pack(locate("single", here=folder))) == {"single.py", "requirements.txt"}


def test_the_same_content_is_the_same_bytes(folder: Path) -> None:
    first = pack(locate(str(folder))).content
    (folder / "other.py").touch()
    assert pack(locate(str(folder))).content == first


@pytest.mark.parametrize("what", ["job.py", "tides.zip", "absent/job"])
def test_a_file_that_is_not_there_is_one_sentence(what: str) -> None:
    with pytest.raises(ArtifactError, match=f"job file {what} cannot be read: No such file or di"):
        pack(locate(what))


def test_a_module_that_is_not_there_is_one_sentence(folder: Path) -> None:
    with pytest.raises(ArtifactError, match="program tidal is not there: no file, folder or mod"):
        locate("tidal", here=folder)
    with pytest.raises(ArtifactError, match="two entries are given: tides and tides:main"):
        locate("tides", "tides:main", folder)


def test_more_than_an_engine_takes_is_refused_here(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MAX_ENTRIES", 3)
    with pytest.raises(ArtifactError, match="is more than an engine takes: at most 3 files"):
        pack(locate(str(folder)))
