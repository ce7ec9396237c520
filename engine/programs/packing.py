"""Packing a program where it is written, for an engine elsewhere.

    flights.py, flights.zip, flights.whl     as they are
    folder/                                  a zip of what lies below it
    package.module[:function]                a zip of the package or module, as it is found from
                                             here, with requirements.txt if that lies beside it

Order    the same content gives the same bytes, so that an engine keeps it once.
Left out caches, hidden files, virtual environments, and links to folders.
Errors   ArtifactError for what is not there, cannot be read, or is more than an engine takes.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ArtifactError
from engine.programs.archive import MAX_BYTES, MAX_ENTRIES
from engine.programs.entry import parse_entry
from engine.programs.intake import SUFFIXES
from engine.programs.requirements import FILE

_CACHE = "__pycache__"
_ENVIRONMENT = "pyvenv.cfg"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Packed:
    """What an engine is sent."""

    filename: str
    content: bytes
    entry: str | None


@dataclass(frozen=True, slots=True)
class Located:
    """A program on this disk."""

    path: Path
    """A job file, an archive or a folder."""
    entry: str | None
    only: str | None = None
    """Of a folder: the one module or package that belongs to the program."""


def locate(what: str, entry: str | None = None, here: Path | None = None) -> Located:
    """Find what a person means: a file, a folder, or an entry that is found from here.

    Raises ArtifactError.
    """
    path = Path(what)
    if path.is_dir():
        return Located(path, entry)
    if path.exists() or path.suffix in SUFFIXES or os.sep in what:
        return Located(path, entry)
    folder = here or Path.cwd()
    top = parse_entry(what).module.partition(".")[0]
    if entry is not None:
        msg = f"two entries are given: {what} and {entry}; name a file or folder, or one entry"
        raise ArtifactError(msg)
    if not (folder / top).is_dir() and not (folder / f"{top}.py").is_file():
        msg = f"program {what} is not there: no file, folder or module of that name; check the name"
        raise ArtifactError(msg)
    return Located(folder, what, top)


def pack(found: Located) -> Packed:
    """Read a program whole. Raises ArtifactError."""
    try:
        if not found.path.is_dir():
            return Packed(found.path.name, found.path.read_bytes(), found.entry)
        name = found.only or found.path.resolve().name
        return Packed(f"{name}.zip", _zip(found), found.entry)
    except OSError as error:
        msg = (
            f"job file {error.filename or found.path} cannot be read: {error.strerror}"
            "; check the path"
        )
        raise ArtifactError(msg) from error


def _zip(found: Located) -> bytes:
    files = _files(found.path) if found.only is None else _of_module(found.path, found.only)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _bounded(sorted(files), found.path):
            entry = zipfile.ZipInfo(path.relative_to(found.path).as_posix(), _LONG_AGO)
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _of_module(folder: Path, name: str) -> Iterator[Path]:
    beside = folder / FILE
    if beside.is_file():
        yield beside
    if (folder / name).is_dir():
        yield from _files(folder / name)
    else:
        yield folder / f"{name}.py"


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if _wanted(Path(place, name))]
        yield from (Path(place, name) for name in names if not name.startswith("."))


def _wanted(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or folder.name == _CACHE
    return not hidden and not (folder / _ENVIRONMENT).exists()


def _bounded(files: Iterable[Path], folder: Path) -> Iterator[Path]:
    size = 0
    for count, path in enumerate(files, 1):
        size += path.stat().st_size
        if count > MAX_ENTRIES or size > MAX_BYTES:
            msg = (
                f"folder {folder} is more than an engine takes: at most {MAX_ENTRIES:,} files of "
                f"{MAX_BYTES:,} bytes; give a folder with the job's code only"
            )
            raise ArtifactError(msg)
        yield path
