"""The lifeline of a child process: it ends when the process that started it ends.

    parent ──holds the write end──▶ pipe ──▶ child's standard input

The parent keeps the child's standard input open, and writes at most one line: the child's orders.
When the parent dies, however it dies, the pipe ends and the child kills itself. On Linux the kernel
does the same a little faster, and also when the child is stuck in native code.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

PR_SET_PDEATHSIG = 1
STDIN = 0


def die_with_parent() -> None:
    """Tie this process to its parent. Call it first thing, on the main thread."""
    follow_in_death()
    watch_parent()


def follow_in_death() -> None:
    """Have the kernel kill this process when its parent dies, where it can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def read_orders() -> bytes | None:
    """Wait for the one line that the parent writes; None when the parent is gone."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(STDIN, 1)
        if not byte:
            return None
        line += byte
    return bytes(line)


def watch_parent() -> None:
    """Kill this process when the pipe from its parent ends."""
    threading.Thread(target=_watch, name="lifeline", daemon=True).start()


def _watch() -> None:
    while os.read(STDIN, 4096):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
