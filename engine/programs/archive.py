"""Archives from clients: what is let in, and how it is unpacked.

    archive ──every entry is checked──▶ files in a folder; or one sentence, and nothing is written

Refused  names that lead elsewhere (absolute, with "..", a drive or a backslash) or that cannot be
         written here; links and whatever else is no file; encrypted entries; two entries of one
         path; an archive of too many or too large files, or one that grows too much.
Needs    a process with a limit of memory: the list of entries alone may be a hundred times larger
         in memory than in the archive.
Errors   ArtifactError, and StorageError when there is no room.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from engine.errors import ArtifactError, StorageError

MAX_ENTRIES = 10_000
MAX_BYTES = 512 << 20
"""Unpacked; a job's code with models and tables beside it is far smaller."""
MAX_RATIO = 100
"""Text shrinks tenfold. What is tiny may shrink more: see `RATIO_MATTERS_BYTES`."""
RATIO_MATTERS_BYTES = 16 << 20
MAX_NAME_BYTES = 255
"""Of one segment, on every file system we know."""

_CHUNK_BYTES = 1 << 20
_ENCRYPTED = 0x1


def unpack(archive: Path, folder: Path, name: str) -> None:
    """Write every file of an archive into an empty folder; `name` is what people call it."""
    with _in_a_sentence(name), zipfile.ZipFile(archive) as opened:
        paths = checked(opened.infolist(), archive.stat().st_size, name)
        for info, path in paths:
            _write(opened, info, folder / path)


def checked(
    entries: Sequence[zipfile.ZipInfo], packed_bytes: int, name: str
) -> list[tuple[zipfile.ZipInfo, PurePosixPath]]:
    """The files among the entries, each with its path. Raises ArtifactError."""
    if len(entries) > MAX_ENTRIES:
        msg = (
            f"archive {name} has too many entries: got {len(entries):,}; at most {MAX_ENTRIES:,}"
            " are taken"
        )
        raise ArtifactError(msg)
    size = sum(info.file_size for info in entries)
    if size > MAX_BYTES:
        msg = (
            f"archive {name} is too large unpacked: got {size:,} bytes; at most {MAX_BYTES:,}"
            " are taken, so let the job read larger files by itself"
        )
        raise ArtifactError(msg)
    if size > RATIO_MATTERS_BYTES and size > MAX_RATIO * packed_bytes:
        msg = (
            f"archive {name} grows too much: {packed_bytes:,} bytes become {size:,}"
            f"; at most {MAX_RATIO} times its size is taken"
        )
        raise ArtifactError(msg)
    files: dict[PurePosixPath, zipfile.ZipInfo] = {}
    for info in entries:
        path = _path(info, name)
        if not info.is_dir():
            if path in files:
                raise _refused(info, name, "is there twice")
            files[path] = info
    folders = {parent for path in files for parent in path.parents}
    for path in folders & files.keys():
        raise _refused(files[path], name, "is a file and a folder at once")
    return [(info, path) for path, info in files.items()]


def _path(info: zipfile.ZipInfo, name: str) -> PurePosixPath:
    """Where an entry goes, below the folder."""
    given = info.orig_filename  # as it was sent: `filename` ends at a zero byte
    path = PurePosixPath(given)
    if given.startswith("/") or ".." in path.parts or "\\" in given or given[1:2] == ":":
        raise _refused(info, name, "leads out of the archive")
    if not given.isprintable() or any(_too_long(part) for part in path.parts) or not path.parts:
        raise _refused(info, name, "has a name that cannot be written")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _refused(info, name, "is a link or a device, not a file")
    if info.flag_bits & _ENCRYPTED:
        raise _refused(info, name, "is encrypted")
    return path


def _too_long(part: str) -> bool:
    return len(part.encode(errors="surrogatepass")) > MAX_NAME_BYTES


def _refused(info: zipfile.ZipInfo, name: str, reason: str) -> ArtifactError:
    msg = f"archive {name} is refused: entry {info.orig_filename[:80]!r} {reason}"
    return ArtifactError(f"{msg}; build it again without")


def _write(opened: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> None:
    """Write one file. The library gives no more of it than its declared size."""
    with opened.open(info) as packed:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                for chunk in _chunks(packed):
                    file.write(chunk)
        except OSError as error:
            msg = (
                f"archive entry {info.filename[:80]!r} cannot be kept: {error.strerror}"
                "; make room in the engine's home folder"
            )
            raise StorageError(msg) from error


def _chunks(packed: IO[bytes]) -> Iterator[bytes]:
    while chunk := packed.read(_CHUNK_BYTES):
        yield chunk


@contextmanager
def _in_a_sentence(name: str) -> Iterator[None]:
    """What the library raises for bytes that are no archive, or half of one."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        msg = f"archive {name} cannot be read: {error}; build it again"
        raise ArtifactError(msg) from error
    except MemoryError:
        msg = f"archive {name} has too many entries to be read; at most {MAX_ENTRIES:,} are taken"
        raise ArtifactError(msg) from None
