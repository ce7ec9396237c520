"""The folder of a snapshot that somebody else has named: read, and never left.

    ConfinedFolder(path, root)  every file is the one that lies under root, links followed

Errors   SnapshotCorrupt for a file that a link places elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from engine.checkpoint.storage.local_folder import LocalFolder
from engine.errors import SnapshotCorrupt


def real_path(path: Path) -> Path:
    """Where a path leads when all links are followed; one in a circle leads to itself."""
    return Path(os.path.realpath(path))


class ConfinedFolder(LocalFolder):
    """A local folder of which only files below a root can be read."""

    def __init__(self, path: Path, root: Path, *, opens: bool = False) -> None:
        """`opens`: files that are scanned are opened first, so that the scan needs no right to."""
        super().__init__(path)
        self._root = real_path(root)
        self._opens = opens

    def open(self, name: str) -> IO[bytes] | None:
        """Open a file to be read; None if there is none."""
        self._check(name)
        return super().open(name)

    def scannable(self, name: str) -> str | IO[bytes]:
        """The path of a file, or the file."""
        self._check(name)
        return (self.open(name) if self._opens else None) or super().scannable(name)

    def size(self, name: str) -> int | None:
        """Return the size of a file, None if there is none."""
        self._check(name)
        return super().size(name)

    def _check(self, name: str) -> None:
        if not real_path(self._at(name)).is_relative_to(self._root):
            msg = (
                f"snapshot file {name} in {self.url} is a link that leads out of {self._root}; "
                "put a copy in its place"
            )
            raise SnapshotCorrupt(msg)
