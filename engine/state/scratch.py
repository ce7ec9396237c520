"""Scratch folders for state on disk: each belongs to one process, and is removed after its death.

    <folder>/headwater-state-<host>-<process id>-<random>/

A worker that is killed cannot tidy up, so whoever makes a folder next removes those of the dead.
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
    where = Path(tempfile.gettempdir()) if parent is None else parent
    where.mkdir(parents=True, exist_ok=True)
    remove_orphans(where)
    return Path(tempfile.mkdtemp(prefix=f"headwater-state-{_HOST}-{os.getpid()}-", dir=where))


def remove_orphans(where: Path) -> None:
    """Remove the folders of processes that are gone."""
    for folder in where.iterdir():
        match = _NAME.fullmatch(folder.name)
        if match is not None and not psutil.pid_exists(int(match[1])):
            with suppress(OSError):  # another process may be at it too, or own it
                shutil.rmtree(folder)
