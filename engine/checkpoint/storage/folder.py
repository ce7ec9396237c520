"""The folder of one snapshot: files that are written whole, and read back verified.

Shapes   names inside a folder are relative and use "/". Of what lies outside, only the folder
         beside it that checkpoints share can be named: "../shared/…".
Errors   StorageError when it cannot be written, SnapshotCorrupt when a file is missing or altered.
"""

from __future__ import annotations

import hashlib
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO

from engine.errors import SnapshotCorrupt

SHARED = "../shared/"
"""How the names of files begin that a checkpoint shares with others."""

Write = Callable[[IO[bytes]], object]
"""Puts the content into an open binary file."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file as it was written."""

    size_bytes: int
    sha256: str


class Folder(ABC):
    """The folder of one snapshot. May be used from several threads."""

    url: str

    @abstractmethod
    def write(self, name: str, write: Write, *, create: bool = False) -> Stored:
        """Write a file whole, atomically and durably: create or replace it, or only create it.

        Raises StorageError, also when a file to be created is there.
        """

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return a whole file, None if there is none. Raises StorageError."""

    def open(self, name: str) -> IO[bytes] | None:
        """Open a file to be read, also out of order; None if there is none. Raises StorageError."""
        content = self.read(name)
        return None if content is None else io.BytesIO(content)

    def scannable(self, name: str) -> str | IO[bytes]:
        """What Polars can scan a file by: its address, or else its whole content."""
        return self.open(name) or io.BytesIO()

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes, None if there is none. Raises StorageError."""
        content = self.read(name)
        return None if content is None else len(content)

    def is_file(self) -> bool:
        """Whether there is a file where the folder should be."""
        return False

    @abstractmethod
    def exists(self) -> bool:
        """Whether the folder is there."""

    @abstractmethod
    def children(self) -> list[str]:
        """Names of the folders in it, sorted; none if it is not there. Raises StorageError."""

    @abstractmethod
    def files(self) -> list[str]:
        """Names of all files in it and below, sorted. Raises StorageError."""

    @abstractmethod
    def remove(self, names: Collection[str]) -> None:
        """Delete some files, and folders that have become empty; nothing to do for those that are
        gone. Raises StorageError.
        """

    @abstractmethod
    def delete(self) -> None:
        """Remove the folder with everything in it; nothing to do if it is gone."""


def check_present(folder: Folder, name: str, expected: Stored) -> None:
    """Find a missing or torn file without reading it. Raises SnapshotCorrupt."""
    size_bytes = folder.size(name)
    if size_bytes != expected.size_bytes:
        raise SnapshotCorrupt(_corrupt(folder, name, _problem(size_bytes, expected)))


def open_verified(folder: Folder, name: str, expected: Stored) -> IO[bytes]:
    """Open a file after comparing all of it with what was written. Raises SnapshotCorrupt."""
    check_present(folder, name, expected)
    file = folder.open(name)
    if file is None:
        raise SnapshotCorrupt(_corrupt(folder, name, _problem(None, expected)))
    if hashlib.file_digest(file, "sha256").hexdigest() != expected.sha256:  # type: ignore[arg-type]
        file.close()
        problem = "is altered: its content does not match its checksum"
        raise SnapshotCorrupt(_corrupt(folder, name, problem))
    file.seek(0)
    return file


def _problem(size_bytes: int | None, expected: Stored) -> str:
    if size_bytes is None:
        return "is missing"
    return f"is torn: {size_bytes} bytes instead of {expected.size_bytes}"


def _corrupt(folder: Folder, name: str, problem: str) -> str:
    return f"snapshot file {name} in {folder.url} {problem}; choose another snapshot"


def checked(name: str, url: str) -> str:
    """Refuse names that lead out of the folder: manifests may come from anywhere."""
    path = PurePosixPath(name.removeprefix(SHARED))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        msg = f"snapshot {url} names a file outside of itself: got {name!r}; do not use it"
        raise SnapshotCorrupt(msg)
    return name


def placed(name: str, at: str) -> str:
    """The address of a file of the folder `at`, both with "/".

    >>> placed("uid/a.parquet", "job/chk-7"), placed("../shared/chk-3/a.parquet", "job/chk-7")
    ('job/chk-7/uid/a.parquet', 'job/shared/chk-3/a.parquet')
    """
    if name.startswith(SHARED):
        return f"{at.rpartition('/')[0]}/{name.removeprefix('../')}"
    return f"{at}/{name}"


def taken(name: str, url: str) -> str:
    """The message when a file that must be new is there."""
    return (
        f"snapshot file {name} in {url} is there already: another snapshot has this folder; "
        "choose an empty one"
    )
