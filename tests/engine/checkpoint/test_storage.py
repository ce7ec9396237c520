"""Snapshot folders: atomic writes, verified reads."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import polars as pl
import pytest

from engine.checkpoint.storage.addresses import open_folder
from engine.checkpoint.storage.folder import Stored, Write, check_present, open_verified
from engine.errors import ConfigError, SnapshotCorrupt, StorageError


def put(content: bytes) -> Write:
    return lambda file: file.write(content)


def test_a_file_address_and_a_path_are_the_same_folder(tmp_path: Path) -> None:
    open_folder((tmp_path / "with space").as_uri()).write("file", put(b"x"))
    assert open_folder(str(tmp_path / "with space")).read("file") == b"x"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    folder = open_folder(str(tmp_path))
    folder.write("file", put(b"old"))

    def torn(file: IO[bytes]) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match=r"cannot be written: No space left on device; check"):
        folder.write("file", torn)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    assert folder.read("file") == b"old"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(StorageError, match="taken/file cannot be written"):
        open_folder(str(tmp_path / "taken")).write("file", put(b"x"))


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "sub/../../secret", ""])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(SnapshotCorrupt, match="names a file outside of itself"):
        open_folder(str(tmp_path)).read(name)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "s3://",
        "s3:///a",
        "s3://key:secret@bucket/a",
        "file://elsewhere/a",
        "ftp://x",
        "a\0b",
        "http://[::1",
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="snapshot storage cannot be used: got "):
        open_folder(url)


@pytest.mark.parametrize("name", ["//[x", "a:b", "ü ?#%20", "q'\"", "..."])
def test_any_path_of_the_file_system_is_one(tmp_path: Path, name: str) -> None:
    path = f"{tmp_path}/{name}"
    open_folder(path).write("file", put(b"x"))
    assert Path(path, "file").read_bytes() == b"x"
    assert open_folder(f"/{path}").read("file") == b"x"


def test_a_library_that_meets_a_full_disk_is_reported_like_the_system(tmp_path: Path) -> None:
    def torn(file: IO[bytes]) -> None:
        file.write(b"half")
        raise pl.exceptions.ComputeError("underlying IO error: No space left on device")

    with pytest.raises(StorageError, match="cannot be written: underlying IO error: No space"):
        open_folder(str(tmp_path)).write("file", torn)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("content", "problem"), [(None, "is missing"), (b"row", "is torn: 3")])
def test_missing_and_torn_files_are_found_without_reading_them(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    with pytest.raises(SnapshotCorrupt, match=f"snapshot file file in .* {problem}"):
        check_present(open_folder(str(tmp_path)), "file", Stored(4, "0" * 64))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "is missing"),
        (b"row", "is torn: 3 bytes instead of 4"),
        (b"rowz", "is altered: its content does not match its checksum"),
    ],
)
def test_a_damaged_file_is_named_with_what_is_wrong(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    folder = open_folder(str(tmp_path))
    stored: Stored = folder.write("file", put(b"rows"))
    (tmp_path / "file").unlink()
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    with pytest.raises(SnapshotCorrupt, match=f"snapshot file file in .* {problem}"):
        open_verified(folder, "file", stored)
