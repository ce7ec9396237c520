"""A task manager and workers that are played: what a job manager hears without processes.

    task_manager = PlayedTaskManager(fleet, slots=4)
    ...                                   # jobs that are submitted run: restore, checkpoint, end

Thousands of jobs a minute run so, through all of the job manager's own code. Workers do at once
what they are told: they are ready, take part in each snapshot, and end with their input, which is
empty; or, with `endless`, they run until they are killed or stopped.

Order    everything is said later on the event loop, as by a process at the other end of a socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from engine.checkpoint.format.entries import OperatorPart, SubtaskSnapshot
from engine.cluster.machines.control_server import Hello, Peer
from engine.cluster.machines.fleet import Fleet
from engine.cluster.programs.artifacts import load_plan
from engine.elements import AfterBarrier, Micros
from engine.graph.jobgraph import TaskId
from engine.graph.plan import VertexPlan
from engine.operators.sources.source import SplitState
from engine.runtime import control


class _Line:
    """The job manager's end of a connection to someone who is played."""

    def __init__(self, fleet: Fleet, hello: Hello) -> None:
        self.hello = hello
        self.hear: Callable[[control.Message], None] = lambda _: None
        self._fleet = fleet
        self._loop = asyncio.get_running_loop()

    def open(self, hear: Callable[[control.Message], None]) -> None:
        """Say hello; `hear` is told whatever the job manager says."""
        self.hear = hear
        self._fleet.on_peer(cast("Peer", self))  # it has all that the fleet needs of one

    def send(self, message: control.Message) -> None:
        """From the job manager."""
        self._loop.call_soon(self.hear, message)

    def say(self, message: control.Message) -> None:
        """To the job manager."""
        self._loop.call_soon(self._fleet.on_message, cast("Peer", self), message)

    def cut(self) -> None:
        """Nothing to close."""


class PlayedTaskManager:
    """Starts played workers."""

    def __init__(
        self, fleet: Fleet, slots: int, name: str = "tm-1", *, endless: bool = False
    ) -> None:
        self.endless = endless
        """Whether the input of workers that are started from now on has no end."""
        self._fleet = fleet
        self._workers: set[tuple[str, int]] = set()
        self._line = _Line(fleet, control.TaskManagerHello(name, 0, slots, "host"))
        self._line.open(self._hear)

    def beat(self) -> None:
        """Say that it is alive; after some seconds without, it is lost."""
        self._line.say(control.Heartbeat(control.ProcessUse(0, 0, 0.0), {}))

    def _hear(self, message: control.Message) -> None:
        match message:
            case control.StartWorker():
                self._start(message)
            case control.KillWorkers(attempt_id):
                for key in [key for key in self._workers if key[0] == attempt_id]:
                    self._end(*key, -9)

    def _start(self, spec: control.StartWorker) -> None:
        self._workers.add((spec.attempt_id, spec.slot))
        line = _Line(self._fleet, control.WorkerHello(spec.attempt_id, spec.slot, 0))

        def end() -> None:
            self._end(spec.attempt_id, spec.slot, 0)

        line.open(PlayedWorker(spec, line.say, end, endless=self.endless).hear)

    def _end(self, attempt_id: str, slot: int, code: int) -> None:
        if (attempt_id, slot) in self._workers:
            self._workers.remove((attempt_id, slot))
            self._line.say(control.WorkerExited(attempt_id, slot, 0, code))


class PlayedWorker:
    """Says what a worker says whose input is empty, or has no end."""

    def __init__(
        self,
        spec: control.StartWorker,
        say: Callable[[control.Message], None],
        end: Callable[[], None],
        *,
        endless: bool,
    ) -> None:
        """`say` reaches the job manager; `end` is called when all is done."""
        self._say = say
        self._end = end
        self._endless = endless
        self._last: int | None = None
        """The checkpoint after which all is done."""
        vertices = load_plan(str(Path(spec.graph).parent)).vertices
        self._tasks = {
            TaskId(one.id, spec.slot): one for one in vertices if spec.slot < one.parallelism
        }

    def hear(self, message: control.Message) -> None:
        """From the job manager."""
        match message:
            case control.Prepare():
                self._say(control.WorkerReady())
            case control.Run():
                if not self._endless:
                    for task in self._tasks:
                        self._say(control.EndOfInputReached(task.vertex, task.subtask))
            case control.Trigger(checkpoint_id, _, then):
                if then != AfterBarrier.CONTINUE:
                    self._last = checkpoint_id
                self._acknowledge(checkpoint_id)
            case control.Completed(checkpoint_id) if checkpoint_id == self._last:
                for task in self._tasks:
                    self._say(control.TaskFinished(task.vertex, task.subtask))
            case control.Stop():
                self._end()

    def report(self, numbers: Mapping[str, float]) -> None:
        """Say these numbers of each subtask."""
        names = [f"{task.vertex}/{task.subtask}" for task in self._tasks]
        self._say(control.Metrics(dict.fromkeys(names, numbers), {}, {}))

    def _acknowledge(self, checkpoint_id: int) -> None:
        for task, vertex in self._tasks.items():
            stored = SubtaskSnapshot(task, checkpoint_id, _parts(vertex, task.subtask))
            self._say(control.Acknowledged(checkpoint_id, stored.to_json()))


def _parts(vertex: VertexPlan, subtask: int) -> tuple[OperatorPart, ...]:
    first, *others = (operator.uid for operator in vertex.operators)
    splits = {f"split-{subtask}": SplitState(position=0)}
    return (
        OperatorPart(first, Micros(0), splits=splits),
        *(OperatorPart(uid, Micros(0)) for uid in others),
    )
