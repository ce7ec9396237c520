"""The lifeline of a child process: it ends when the process that started it ends.

    parent ──holds the write end──▶ pipe ──▶ child's standard input

The parent keeps the child's standard input open and never writes; when the parent dies, however it
dies, the pipe ends and the child kills itself. On Linux the kernel does the same a little faster,
and also when the child is stuck in native code.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Tie this process to its parent. Call it first thing, on the main thread."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch, name="lifeline", daemon=True).start()


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
