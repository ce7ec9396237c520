"""Deleting a savepoint: what is left after a crash in the middle can be deleted too."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.checkpoint.format.manifest import METADATA
from engine.checkpoint.storage.local_folder import LocalFolder
from engine.cluster.answers.disposal import _delete
from engine.errors import StorageError


class Failing(LocalFolder):
    """A folder whose second file cannot be removed."""

    def remove(self, names):
        names = sorted(names)
        super().remove(names[:1])
        msg = f"{names[1]} cannot be deleted"
        raise StorageError(msg)


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "sp" / "daily").mkdir(parents=True)
    for name in (METADATA, "daily/a.parquet", "daily/b.parquet"):
        (tmp_path / "sp" / name).write_text("1")
    return tmp_path / "sp"


def test_the_manifest_goes_last(folder):
    with pytest.raises(StorageError):
        _delete(Failing(folder))
    assert (folder / METADATA).exists()
    assert not (folder / "daily" / "a.parquet").exists()

    _delete(LocalFolder(folder))
    assert not folder.exists()
    _delete(LocalFolder(folder))  # nothing to do
