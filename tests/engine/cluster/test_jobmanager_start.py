"""What a job manager refuses before it starts anything, and what it finds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from engine.cluster import home, jobmanager
from engine.rest.tokens import VARIABLE


def refusal(home: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert jobmanager.main(["--home", str(home), "--port", "0", *options]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_an_address_that_others_reach_without_a_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    said = refusal(tmp_path, capsys, "--host", "0.0.0.0")
    assert said.startswith("headwater: address 0.0.0.0 is reached by other machines, and no token")


def test_a_damaged_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "engine.db").write_bytes(b"no database" * 99)
    assert "is damaged: file is not a database; put back" in refusal(tmp_path, capsys)


def test_a_home_that_another_one_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with home.locked(tmp_path):
        assert "is in use by another job manager; pass another --home" in refusal(tmp_path, capsys)


def test_temporary_files_lie_in_the_home_and_those_of_a_killed_one_are_removed(
    tmp_path: Path,
) -> None:
    (tmp_path / "passing" / "headwater-upload-x").mkdir(parents=True)
    before = tempfile.gettempdir()
    with home.temporary_files(tmp_path / "passing"):
        assert list((tmp_path / "passing").iterdir()) == []
        assert tempfile.gettempdir() == str(tmp_path / "passing")
    assert tempfile.gettempdir() == before
    assert not (tmp_path / "passing").exists()


def test_sockets_of_a_home_with_a_long_path_lie_elsewhere_as_long_as_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with home.runtime_folder(tmp_path / ("x" * 80), None) as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()
    with home.runtime_folder(tmp_path, None) as folder:
        assert folder == tmp_path / "run"
    assert folder.exists()
