"""Snapshot storage: one folder per snapshot, addressed by URL, written so that a crash leaves no
half file.

    write: temporary file -> fsync -> rename -> fsync of the folder

Shapes   names inside a folder are relative and use "/". A plain path is as good as file://.
Errors   StorageError when it cannot be written, SnapshotCorrupt when a file is missing or altered.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import unquote, urlsplit

import polars as pl

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

    @abstractmethod
    def exists(self) -> bool:
        """Whether the folder is there."""

    @abstractmethod
    def children(self) -> list[str]:
        """Names of the folders in it, sorted; none if it is not there. Raises StorageError."""

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
        except (OSError, pl.exceptions.PolarsError) as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            msg = (
                f"snapshot file {path} cannot be written: {_reason(error)}; check that "
                "the folder exists, can be written and has room"
            )
            raise StorageError(msg) from error
        return stored

    def read(self, name: str) -> bytes | None:
        """Return a whole file, None if there is none."""
        file = self.open(name)
        if file is None:
            return None
        with file:
            return file.read()

    def open(self, name: str) -> IO[bytes] | None:
        """Open a file to be read; None if there is none."""
        path = self._path / _checked(name, self.url)
        try:
            return path.open("rb")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            msg = (
                f"snapshot file {path} cannot be read: {error.strerror or error}; check its rights"
            )
            raise StorageError(msg) from error

    def scannable(self, name: str) -> str:
        """The path of a file."""
        return str(self._path / _checked(name, self.url))

    def size(self, name: str) -> int | None:
        """Return the size of a file, None if there is none."""
        path = self._path / _checked(name, self.url)
        return path.stat().st_size if path.is_file() else None

    def exists(self) -> bool:
        """Whether the folder is there."""
        return self._path.is_dir()

    def children(self) -> list[str]:
        """Names of the folders in it."""
        try:
            return sorted(path.name for path in self._path.iterdir() if path.is_dir())
        except FileNotFoundError:
            return []
        except OSError as error:
            msg = f"snapshot folder {self._path} cannot be read: {_reason(error)}; check its rights"
            raise StorageError(msg) from error

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
    path = _path_of(url)
    if path is None or not path.strip() or "\0" in path:
        msg = f"snapshot storage cannot be used: got {url!r}; pass a path or a file:// address"
        raise ConfigError(msg)
    return LocalFolder(Path(path))


def _path_of(url: str) -> str | None:
    """The local path that an address means; None when it means none."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    local = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return unquote(parts.path) if local else None


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


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


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
