"""Artifacts: uploaded job files, kept under their own hash.

    <home>/artifacts/<first two digits>/<sha256>

Guarantee   A file that is here is whole: it is written aside, forced to disk, and then renamed.
            Nothing of it is ever run or unpacked in this process: `compile` only parses.
Errors      Refused (400) with one sentence; a syntax error names its line.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tempfile
import unicodedata
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from django.conf import settings

from controlplane.access.errors import invalid
from controlplane.jobs.placement import JAR

MAX_BYTES, MAX_JAR_BYTES = 16 * 1024 * 1024, 256 * 1024 * 1024
"""A jar brings all that it needs, connectors too."""
SOURCE, ARCHIVES = ".py", (".zip", ".whl", JAR)
FIELD = "file"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A kept file."""

    filename: str
    checksum: str
    size_bytes: int


def store(filename: str, content: bytes) -> Artifact:
    """Check an uploaded job file and keep it; the same content is kept once."""
    name = safe_name(filename)
    _check_size(name, len(content))
    if name.endswith(SOURCE):
        _check_syntax(name, content)
    elif not zipfile.is_zipfile(io.BytesIO(content)):
        msg = f"{name} cannot be read: it is not an archive; build it again and upload it again"
        raise invalid(msg, FIELD)
    checksum = hashlib.sha256(content).hexdigest()
    _keep(Path(settings.HEADWATER_ARTIFACTS) / checksum[:2] / checksum, content)
    return Artifact(name, checksum, len(content))


def safe_name(filename: str) -> str:
    """The name without folders and odd characters; it must end in .py, .zip, .whl or .jar.

    Engines take Latin letters only: of others the accents go, and a name without any becomes `job`.
    """
    last = PurePosixPath(PureWindowsPath(filename).name).name
    stem, suffix = PurePosixPath(last).stem, PurePosixPath(last).suffix
    if suffix not in (SOURCE, *ARCHIVES):
        msg = (
            f"the job file must be a Python file, a zip, a wheel or a jar: got {last[:80]!r}; "
            "choose one that ends in .py, .zip, .whl or .jar"
        )
        raise invalid(msg, FIELD)
    plain = unicodedata.normalize("NFKD", stem)
    latin = "".join(letter for letter in plain if not unicodedata.combining(letter))
    stem = re.sub(r"[^A-Za-z0-9_.+-]+", "_", latin).strip("._-")
    return f"{stem[:80] or 'job'}{suffix}"


def _check_size(name: str, size: int) -> None:
    if size == 0:
        msg = f"{name} is empty: choose a file that builds a job"
        raise invalid(msg, FIELD)
    most = MAX_JAR_BYTES if name.endswith(JAR) else MAX_BYTES
    if size > most:
        msg = f"{name} is too large: {size:,} bytes; such an artifact has at most {most:,}"
        raise invalid(msg, FIELD)


def _check_syntax(name: str, content: bytes) -> None:
    try:
        compile(content, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        msg = f"{name} cannot be read: {error.msg}{where}; correct it and upload it again"
        raise invalid(msg, FIELD) from None
    except (RecursionError, MemoryError):  # these come without words of their own
        msg = f"{name} cannot be read: its code is nested too deeply; choose a Python source file"
        raise invalid(msg, FIELD) from None
    except ValueError as error:
        msg = f"{name} cannot be read: {error}; choose a Python source file"
        raise invalid(msg, FIELD) from None


def is_whole(path: Path, checksum: str) -> bool:
    """Whether the kept file is there and is what was uploaded."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == checksum


def _keep(path: Path, content: bytes) -> None:
    if is_whole(path, path.name):
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=".")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    Path(draft).replace(path)
