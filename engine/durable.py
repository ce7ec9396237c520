"""Folders that survive a power cut: their entries are forced to disk, not only their files.

Needs    a local file system on which fsync means what it says.
Errors   OSError passes through: whoever writes knows what to tell people.
"""

from __future__ import annotations

import os
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make a folder and its parents; each entry is on disk before anything counts on it."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Force the entries of a folder to disk: after this, a rename in it is for good."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
