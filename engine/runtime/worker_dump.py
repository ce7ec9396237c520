"""What a worker says about itself when asked with SIGUSR1: its subtasks, and every thread's stack.

Read in the job's log. It runs on the main thread between two bytecodes, so it needs no care; a
main thread that is stuck in native code does not answer.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable


def answer_dumps(things: Callable[[], Iterable[object]]) -> None:
    """From now on print `things` and all stacks on SIGUSR1. Main thread."""

    def on_signal(_number: int, _frame: object) -> None:
        print(*things(), *stacks(), sep="\n", flush=True)

    signal.signal(signal.SIGUSR1, on_signal)


def stacks() -> Iterable[str]:
    """The stack of every thread, innermost call last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        yield f"thread {names.get(ident, ident)!r}:"
        yield "".join(traceback.format_stack(frame)).rstrip()
