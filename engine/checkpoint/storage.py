"""Snapshot storage: one folder per snapshot, addressed by URL, written so that a crash leaves no
half file.

    write: temporary file -> fsync -> rename -> fsync of the folder

Shapes   names inside a folder are relative and use "/". A plain path is as good as file://.
Errors   StorageError when it cannot be written, SnapshotCorrupt when a file is missing or altered.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import unquote, urlsplit

from engine.durable import make_folder, sync_folder
from engine.errors import ConfigError, SnapshotCorrupt, StorageError

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
    def write(self, name: str, write: Write) -> Stored:
        """Create or replace a file, atomically and durably. Raises StorageError."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return a whole file, None if there is none. Raises StorageError."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether the folder is there."""

    @abstractmethod
    def delete(self) -> None:
        """Remove the folder with everything in it; nothing to do if it is gone."""


class LocalFolder(Folder):
    """A folder of the local file system."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.url = str(path)

    def write(self, name: str, write: Write) -> Stored:
        """Create or replace a file, atomically and durably."""
        path = self._path / _checked(name, self.url)
        # The process in the name: two attempts of a job may meet here.
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            make_folder(path.parent)
            with temporary.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            stored = _measure(temporary)
            temporary.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            msg = (
                f"snapshot file {path} cannot be written: {error.strerror or error}; check that "
                "the folder exists, can be written and has room"
            )
            raise StorageError(msg) from error
        return stored

    def read(self, name: str) -> bytes | None:
        """Return a whole file, None if there is none."""
        path = self._path / _checked(name, self.url)
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            msg = (
                f"snapshot file {path} cannot be read: {error.strerror or error}; check its rights"
            )
            raise StorageError(msg) from error

    def exists(self) -> bool:
        """Whether the folder is there."""
        return self._path.is_dir()

    def delete(self) -> None:
        """Remove the folder with everything in it."""
        try:
            shutil.rmtree(self._path)
        except FileNotFoundError:
            return
        except OSError as error:
            msg = (
                f"snapshot folder {self._path} cannot be deleted: {error.strerror or error}; "
                "check its rights"
            )
            raise StorageError(msg) from error


def open_folder(url: str) -> Folder:
    """Return the folder at a path or file:// URL. Touches nothing. Raises ConfigError.

    >>> open_folder("file:///tmp/a%20b").url
    '/tmp/a b'
    """
    parts = urlsplit(url)
    if not url.strip() or parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        msg = f"snapshot storage cannot be used: got {url!r}; pass a path or a file:// address"
        raise ConfigError(msg)
    return LocalFolder(Path(unquote(parts.path) if parts.scheme == "file" else url))


def read_verified(folder: Folder, name: str, expected: Stored) -> bytes:
    """Return a file after comparing it with what was written. Raises SnapshotCorrupt."""
    content = folder.read(name)
    if content is None:
        problem = "is missing"
    elif len(content) != expected.size_bytes:
        problem = f"is torn: {len(content)} bytes instead of {expected.size_bytes}"
    elif hashlib.sha256(content).hexdigest() != expected.sha256:
        problem = "is altered: its content does not match its checksum"
    else:
        return content
    msg = f"snapshot file {name} in {folder.url} {problem}; choose another snapshot"
    raise SnapshotCorrupt(msg)


def _checked(name: str, url: str) -> str:
    """Refuse names that lead out of the folder: manifests may come from anywhere."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        msg = f"snapshot {url} names a file outside of itself: got {name!r}; do not use it"
        raise SnapshotCorrupt(msg)
    return name


def _measure(path: Path) -> Stored:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return Stored(path.stat().st_size, digest.hexdigest())
