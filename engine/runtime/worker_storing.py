"""The threads of a worker that write snapshots, off the subtasks' threads.

    snapshot of a subtask ──▶ its lane, first come, first served ──▶ written | aborted: left out

Order    snapshots of one subtask are written one after the other, in the order of their barriers:
         a checkpoint may build on files of an earlier one. A slow one holds up its lane only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from engine.checkpoint.format.frozen import TaskSnapshot
from engine.graph.jobgraph import TaskId

LANES = 2
"""One is not enough: the next checkpoint of a subtask would wait for a large one of another."""
ABORTED = 100
"""How many aborted checkpoints are remembered: more than can be in a lane."""

Write = Callable[[TaskSnapshot, int], None]


class Storing:
    """Writes snapshots. Any thread."""

    def __init__(self, tasks: list[TaskId], write: Write) -> None:
        """`write`: gets a snapshot, and how long it held up the flow, ms."""
        lanes = [ThreadPoolExecutor(1, thread_name_prefix="storing") for _ in range(LANES)]
        self._lanes = {task: lanes[index % LANES] for index, task in enumerate(tasks)}
        self._write = write
        self._aborted: deque[int] = deque(maxlen=ABORTED)

    def submit(self, snapshot: TaskSnapshot, sync_ms: int) -> None:
        """Write a snapshot when its turn comes."""
        self._lanes[snapshot.task].submit(self._store, snapshot, sync_ms)

    def abort(self, checkpoint_id: int) -> None:
        """Nobody waits for what is left of a checkpoint."""
        self._aborted.append(checkpoint_id)

    def _store(self, snapshot: TaskSnapshot, sync_ms: int) -> None:
        if snapshot.barrier.checkpoint_id not in self._aborted:
            self._write(snapshot, sync_ms)
