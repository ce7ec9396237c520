"""Scratch folders for state on disk: each belongs to one process, and is removed after its death.

    <folder>/headwater-state-<host>-<process id>-<random>/

A worker that is killed cannot tidy up: the job manager removes the folders of the dead when an
attempt is over, and so does whoever makes a folder next.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil

_HOST = re.sub(r"\W", "_", platform.node())
"""Containers may share a folder and have the same process ids."""

_NAME = re.compile(rf"headwater-state-{_HOST}-(\d+)-\w+")


def scratch_folder(parent: Path | None = None) -> Path:
    """Make an empty folder of this process."""
    where = temporary_folder() if parent is None else parent
    where.mkdir(parents=True, exist_ok=True)
    remove_orphans(where)
    return Path(tempfile.mkdtemp(prefix=f"headwater-state-{_HOST}-{os.getpid()}-", dir=where))


def temporary_folder() -> Path:
    """Where folders go that belong nowhere else.

    Unlike `tempfile.gettempdir`, which writes to find out, it can be told on a full disk too.
    """
    return Path(os.environ.get("TMPDIR") or "/tmp")  # noqa: S108  what `mkdtemp` makes is ours


def remove_orphans(where: Path) -> None:
    """Remove the folders of processes that are gone."""
    with suppress(OSError):  # another process may be at it too, or own it
        for folder in where.iterdir():
            match = _NAME.fullmatch(folder.name)
            if match is not None and not _lives(int(match[1])):
                shutil.rmtree(folder, ignore_errors=True)


def _lives(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
