"""The broom: removes the folders of an embedded cluster when their owner is gone, however it went.

    python -m engine.cluster.machines.broom FOLDER …       waits for the end of its standard input

Needs    only the standard library, so that it costs next to nothing while it waits.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

TRIES, PAUSE_S = 50, 0.1
"""Workers that are dying may still write for a moment."""


def main(folders: Sequence[str]) -> int:
    """Wait, then sweep; return how many folders are left."""
    while sys.stdin.buffer.read(4096):
        pass
    pause = threading.Event()
    left = [Path(folder) for folder in folders]
    for _ in range(TRIES):
        for folder in left:
            shutil.rmtree(folder, ignore_errors=True)
        left = [folder for folder in left if folder.exists()]
        if not left:
            return 0
        pause.wait(PAUSE_S)
    return len(left)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
