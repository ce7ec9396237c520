"""The threads that write snapshots: one subtask's in order, aborted ones not at all."""

from __future__ import annotations

import threading
from queue import Queue

from engine.checkpoint.format.frozen import TaskSnapshot
from engine.elements import Barrier, Micros
from engine.graph.jobgraph import TaskId
from engine.runtime.worker_storing import Storing
from engine.testing.cluster import PATIENCE_S

SLOW, QUICK = TaskId("a", 0), TaskId("b", 0)


def taken(task: TaskId, checkpoint_id: int) -> TaskSnapshot:
    return TaskSnapshot(task, Barrier(checkpoint_id), (), Micros(0), Micros(0))


class Written:
    """Takes what is written; writes of the slow subtask wait."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.written: Queue[tuple[TaskId, int]] = Queue()
        self.storing = Storing([SLOW, QUICK], self._write)

    def _write(self, snapshot: TaskSnapshot, _sync_ms: int) -> None:
        if snapshot.task == SLOW:
            assert self.may_go_on.wait(PATIENCE_S)
        self.written.put((snapshot.task, snapshot.barrier.checkpoint_id))

    def next(self) -> tuple[TaskId, int]:
        return self.written.get(timeout=PATIENCE_S)


def test_a_slow_snapshot_holds_up_the_next_of_its_subtask_only() -> None:
    written = Written()
    for checkpoint_id in (1, 2):
        written.storing.submit(taken(SLOW, checkpoint_id), 0)
        written.storing.submit(taken(QUICK, checkpoint_id), 0)
    assert [written.next(), written.next()] == [(QUICK, 1), (QUICK, 2)]
    written.may_go_on.set()
    assert [written.next(), written.next()] == [(SLOW, 1), (SLOW, 2)]


def test_what_waits_of_an_aborted_checkpoint_is_not_written() -> None:
    written = Written()
    for checkpoint_id in (1, 2, 3):
        written.storing.submit(taken(SLOW, checkpoint_id), 0)
    written.storing.abort(2)
    written.may_go_on.set()
    assert [written.next(), written.next()] == [(SLOW, 1), (SLOW, 3)]
