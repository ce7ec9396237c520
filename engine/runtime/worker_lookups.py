"""Questions about live state: what a key has in a state, asked of the subtask that owns it.

    main thread ──begin──▶ subtask, between two steps: flush, look up ──▶ looking thread: rows, JSON
                                                                              └──▶ Found

Order    the flow waits for the look-up, not for what is made of it. Before it, operators emit what
         they hold back, as before a barrier: so what is found is what a snapshot would have.
Errors   a question that cannot be answered is answered with why; no job fails for it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from engine.checkpoint.inspection.questions import StateRows
from engine.connectors.contract import Json
from engine.runtime.control import Found, LookUp
from engine.runtime.task import Task
from engine.runtime.worker_subtask import Subtask
from engine.state.lookup import Rows

MOST_ROWS = 1_000
"""Of a list, a map or rows of one key."""


class Lookups:
    """Answers the questions of one worker."""

    def __init__(self, send: Callable[[Found], None]) -> None:
        """`send` may be called on any thread."""
        self._send = send
        self._looking = ThreadPoolExecutor(1, thread_name_prefix="looking")

    def begin(self, wanted: LookUp, subtask: Subtask) -> None:
        """Have the subtask look; the answer is sent later. Main thread."""
        subtask.ask(lambda task: self._look(task, wanted))

    def _look(self, task: Task, wanted: LookUp) -> None:
        task.flush()
        try:
            rows = task.look_up(wanted.operator, wanted.state, wanted.group, wanted.key, MOST_ROWS)
        except Exception as error:  # noqa: BLE001 the edge of the question: everything is answered
            self._fail(wanted, error)
        else:
            self._looking.submit(self._answer, wanted, rows)

    def _answer(self, wanted: LookUp, rows: Rows) -> None:
        try:
            found = StateRows.of(rows(), MOST_ROWS).to_answer()
        except Exception as error:  # noqa: BLE001 the edge of the thread: everything is answered
            self._fail(wanted, error)
        else:
            self._send(Found(wanted.number, cast("Json", found), None))

    def _fail(self, wanted: LookUp, error: Exception) -> None:
        self._send(Found(wanted.number, None, str(error) or type(error).__name__))
