"""One contract for all storage: local files, S3 (moto's server), memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from engine.checkpoint.storage import object_folder
from engine.checkpoint.storage.addresses import open_folder
from engine.checkpoint.storage.folder import Folder, Write, check_present, open_verified
from engine.errors import SnapshotCorrupt, StorageError
from object_store import bucket

LARGE = bytes(range(256)) * (12 << 12)
"""Larger than what stays in memory on its way, and than one part of an upload."""


def put(content: bytes) -> Write:
    return lambda file: file.write(content)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with bucket() as address:
        yield address


@pytest.fixture(params=["file", "s3", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    match request.param:
        case "file":
            return open_folder(str(tmp_path / "job" / "chk-1"))
        case "memory":
            return open_folder(f"memory://{uuid.uuid4().hex}/job/chk-1")
        case _:
            bucket = request.getfixturevalue("s3")
            return open_folder(f"{bucket}/{uuid.uuid4().hex}/job/chk-1")


def parent(folder: Folder) -> Folder:
    return open_folder(folder.url.rpartition("/")[0])


@pytest.mark.parametrize("content", [b"", b"rows", LARGE])
def test_what_is_written_is_read_back_and_measured(folder: Folder, content: bytes) -> None:
    stored = folder.write("uid/state-0.parquet", put(content))
    assert stored.size_bytes == len(content)
    assert folder.read("uid/state-0.parquet") == content
    assert folder.size("uid/state-0.parquet") == len(content)
    check_present(folder, "uid/state-0.parquet", stored)
    with open_verified(folder, "uid/state-0.parquet", stored) as file:
        file.seek(len(content) // 2)
        assert file.read() == content[len(content) // 2 :]


def test_what_is_not_there_is_none(folder: Folder) -> None:
    assert not folder.exists()
    assert folder.read("file") is None
    assert folder.open("file") is None
    assert folder.size("file") is None
    assert folder.children() == []
    folder.delete()


def test_a_file_can_be_replaced_but_not_created_twice(folder: Folder) -> None:
    folder.write("state", put(b"old"))
    folder.write("state", put(b"new"))
    assert folder.read("state") == b"new"
    folder.write("_metadata", put(b"first"), create=True)
    with pytest.raises(StorageError, match="another snapshot has this folder"):
        folder.write("_metadata", put(b"second"), create=True)
    assert folder.read("_metadata") == b"first"


def test_a_write_that_fails_leaves_nothing(folder: Folder) -> None:
    def torn(file: IO[bytes]) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match="No space left on device"):
        folder.write("state", torn)
    assert folder.read("state") is None


def test_the_children_of_a_folder_are_its_folders_only(folder: Folder) -> None:
    folder.write("a/b/c", put(b"x"))
    parent(folder).write("file", put(b"x"))
    open_folder(f"{folder.url}0").write("x", put(b"x"))
    assert parent(folder).children() == ["chk-1", "chk-10"]


def test_a_deleted_folder_takes_no_other_with_it(folder: Folder) -> None:
    sibling = open_folder(f"{folder.url}0")
    for each in (folder, sibling):
        each.write("uid/state", put(b"x"))
        each.write("_metadata", put(b"x"))
    folder.delete()
    assert not folder.exists()
    assert sibling.read("uid/state") == b"x"


def test_an_altered_file_is_named(folder: Folder) -> None:
    stored = folder.write("state", put(b"rows"))
    folder.write("state", put(b"rowz"))
    with pytest.raises(SnapshotCorrupt, match=r"snapshot file state in .* is altered"):
        open_verified(folder, "state", stored)


def test_no_name_leads_out_of_a_folder(folder: Folder) -> None:
    with pytest.raises(SnapshotCorrupt, match="names a file outside of itself"):
        folder.read("../other/state")


def test_a_put_that_was_tried_again_is_not_a_conflict(s3: str) -> None:
    folder = open_folder(f"{s3}/{uuid.uuid4().hex}")
    folder.write("_metadata", put(b"mine"), create=True)
    folder.write("_metadata", put(b"mine"), create=True)


def test_a_store_that_does_not_answer_is_one_sentence_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(object_folder, "_RETRIES", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do-not-show")
    with pytest.raises(StorageError, match="snapshot s3://away/x cannot be written: ") as caught:
        open_folder("s3://away/x").write("state", put(b"x"))
    assert "do-not-show" not in str(caught.value)


def test_a_shared_file_lies_beside_the_folder_and_only_there(folder: Folder) -> None:
    """Also when the folder itself was never made."""
    stored = folder.write("../shared/chk-1/uid/n-0.parquet", put(b"rows"))
    check_present(folder, "../shared/chk-1/uid/n-0.parquet", stored)
    assert not folder.exists()
    assert parent(folder).children() == ["shared"]
    for name in ("../chk-2/_metadata", "../shared/../chk-2/_metadata", "../shared/", ".."):
        with pytest.raises(SnapshotCorrupt, match="names a file outside of itself"):
            folder.read(name)


def test_files_go_one_by_one_and_empty_folders_with_them(folder: Folder) -> None:
    names = ["a/one", "a/two", "b/deep/one"]
    for name in names:
        folder.write(name, put(b"rows"))
    assert folder.files() == names
    folder.remove(["a/two", "b/deep/one", "never/there"])
    assert (folder.files(), folder.children()) == (["a/one"], ["a"])
    folder.remove([])
    assert parent(folder).files() == ["chk-1/a/one"]
