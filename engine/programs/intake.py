"""The step of an upload: check and unpack a program, and see what it needs, in its own process.

    python -m engine.programs.intake FILE NAME OUT_DIR

    OUT_DIR/NAME          a job file, as it is
    OUT_DIR/code/…        or: what was in an archive
    OUT_DIR/about.json    {"requirements": […]}
    OUT_DIR/error.json    instead of all: {"name", "message"}, one sentence

What clients send is read here, never in the job manager: it may be made to eat memory or time.

Errors   the caller limits the time; memory is limited here, where the platform can (Linux).
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.errors import ArtifactError, HeadwaterError, StorageError, error_json
from engine.programs import requirements
from engine.programs.archive import unpack

ABOUT, ERROR, CODE = "about.json", "error.json", "code"
ARCHIVE_SUFFIXES = (".zip", ".whl")
SUFFIXES = (".py", *ARCHIVE_SUFFIXES)
MEMORY_BYTES = 512 << 20


def take_in(content: Path, name: str, out: Path) -> None:
    """Put a program into an empty folder. Raises ArtifactError, StorageError."""
    if name.endswith(ARCHIVE_SUFFIXES):
        code = out / CODE
        code.mkdir()
        unpack(content, code, name)
        needed = requirements.of_folder(code)
    else:
        shutil.copyfile(content, out / name)
        needed = requirements.of_file(out / name)
    (out / ABOUT).write_text(json.dumps({"requirements": needed}))


def main(argv: Sequence[str]) -> int:
    """Take a program in, and leave the result or the reason in the folder."""
    content, name, out = Path(argv[0]), argv[1], Path(argv[2])
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        take_in(content, name, out)
    except HeadwaterError as error:
        return leave_error(out, error)
    except OSError as error:
        msg = f"{name} cannot be kept: {error.strerror}; make room in the engine's home folder"
        return leave_error(out, StorageError(msg))
    except MemoryError:
        return leave_error(
            out, ArtifactError(f"{name} needs too much memory to be read; make it smaller")
        )
    return 0


def leave_error(out: Path, error: HeadwaterError) -> int:
    """Leave why a step failed, where its caller looks; return the step's exit code."""
    (out / ERROR).write_text(json.dumps(error_json(error)))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
