"""Runs a program that ends when the process that started it ends, however that ends.

    python -S leash.py program argument…

Linux    the kernel kills the program with its parent (PR_SET_PDEATHSIG survives exec), so this
         process becomes the program.
macOS    this process stays between: its standard input is a pipe that nobody writes to, and when
         the pipe ends it kills the program's process group.
Needs    nothing but the standard library: it runs before anything is imported.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import NoReturn

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Run the program; return its exit status where this process stays."""
    if sys.platform == "linux" and not os.environ.get("HEADWATER_LEASH_PIPE"):
        _become(argv)
    return _hold(argv)


def _become(argv: list[str]) -> NoReturn:
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the kernel was asked
        sys.exit(1)
    os.execvp(argv[0], argv)  # noqa: S606 - the supervisor's own programs


def _hold(argv: list[str]) -> int:
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: child.send_signal(received))
    threading.Thread(target=_watch, args=(child.pid,), daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def _watch(group: int) -> None:
    """Wait for the end of the pipe, that is, of the parent."""
    while os.read(0, 4096):
        pass
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
