"""A snapshot folder on the local file system, written so that a crash leaves no half file.

    write: temporary file -> fsync -> rename (or link, to create only) -> fsync of the folder

Needs    a file system on which fsync means what it says.
Errors   StorageError, with what the system said.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import IO

import polars as pl

from engine.checkpoint.storage.folder import SHARED, Folder, Stored, Write, checked, taken
from engine.durable import make_folder, sync_folder
from engine.errors import StorageError


class LocalFolder(Folder):
    """A folder of the local file system."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.url = str(path)

    def _at(self, name: str) -> Path:
        checked(name, self.url)
        # Not by "..": the folder may not be there yet, or be known by a link from elsewhere.
        outside = name.startswith(SHARED)
        return self._path.resolve().parent / name[3:] if outside else self._path / name

    def write(self, name: str, write: Write, *, create: bool = False) -> Stored:
        """Create or replace a file, atomically and durably."""
        path = self._at(name)
        # The process in the name: two attempts of a job may meet here.
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            make_folder(path.parent)
            with temporary.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            stored = _measure(temporary)
            if create:
                self._create(temporary, path)
            else:
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

    def _create(self, temporary: Path, path: Path) -> None:
        """Give a file its name as a link, which fails when the name is taken."""
        try:
            path.hardlink_to(temporary)
        except FileExistsError as error:
            raise StorageError(taken(path.name, self.url)) from error
        finally:
            temporary.unlink()

    def read(self, name: str) -> bytes | None:
        """Return a whole file, None if there is none."""
        file = self.open(name)
        if file is None:
            return None
        with file:
            return file.read()

    def open(self, name: str) -> IO[bytes] | None:
        """Open a file to be read; None if there is none."""
        path = self._at(name)
        try:
            return path.open("rb")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StorageError(_unreadable(path, error)) from error

    def scannable(self, name: str) -> str | IO[bytes]:
        """The path of a file."""
        return str(self._at(name))

    def size(self, name: str) -> int | None:
        """Return the size of a file, None if there is none."""
        path = self._at(name)
        try:
            return path.stat().st_size if path.is_file() else None
        except OSError as error:
            raise StorageError(_unreadable(path, error)) from error

    def is_file(self) -> bool:
        """Whether there is a file where the folder should be."""
        return self._path.is_file()

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

    def files(self) -> list[str]:
        """Names of all files below, also of such as were never completed."""
        try:
            found = (path for path in self._path.rglob("*") if path.is_file())
            return sorted(path.relative_to(self._path).as_posix() for path in found)
        except OSError as error:
            msg = f"snapshot folder {self._path} cannot be read: {_reason(error)}; check its rights"
            raise StorageError(msg) from error

    def remove(self, names: Collection[str]) -> None:
        """Delete some files, then their folders from the inside out, as far as they are empty."""
        paths = [self._at(name) for name in names]
        try:
            for path in paths:
                path.unlink(missing_ok=True)
        except OSError as error:
            msg = (
                f"snapshot file {error.filename} cannot be deleted: {error.strerror or error}; "
                "check its rights"
            )
            raise StorageError(msg) from error
        inside = {
            parent for path in paths for parent in path.parents if self._path in parent.parents
        }
        for parent in sorted(inside, key=lambda each: len(each.parts), reverse=True):
            with suppress(OSError):  # it holds more
                parent.rmdir()

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


def _unreadable(path: Path, error: OSError) -> str:
    return f"snapshot file {path} cannot be read: {_reason(error)}; check it and its rights"


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _measure(path: Path) -> Stored:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return Stored(path.stat().st_size, digest.hexdigest())
