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
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from engine.checkpoint.manifest import OperatorPart, SubtaskSnapshot
from engine.cluster.artifacts import load_plan
from engine.cluster.control_server import Hello, Peer
from engine.cluster.fleet import Fleet
from engine.elements import AfterBarrier, Micros
from engine.graph.jobgraph import TaskId
from engine.graph.plan import Plan, VertexPlan
from engine.operators.sources.source import SplitState
from engine.runtime import control


class _Played:
    """One end of a control connection."""

    def __init__(self, fleet: Fleet, hello: Hello) -> None:
        self.hello = hello
        self._fleet = fleet
        self._loop = asyncio.get_running_loop()
        fleet.on_peer(self._peer)

    @property
    def _peer(self) -> Peer:
        return cast("Peer", self)  # it has all that the fleet needs of one

    def say(self, message: control.Message) -> None:
        """Tell the job manager something, soon."""
        self._loop.call_soon(self._fleet.on_message, self._peer, message)

    def cut(self) -> None:
        """Nothing to close."""


class PlayedTaskManager(_Played):
    """Starts played workers."""

    def __init__(
        self, fleet: Fleet, slots: int, name: str = "tm-1", *, endless: bool = False
    ) -> None:
        self.workers: dict[tuple[str, int], PlayedWorker] = {}
        self.endless = endless
        super().__init__(fleet, control.TaskManagerHello(name, 0, slots, "host"))

    def send(self, message: control.Message) -> None:
        """Hear the job manager."""
        match message:
            case control.StartWorker():
                self._loop.call_soon(self._start, message)
            case control.KillWorkers(attempt_id):
                for key in [key for key in self.workers if key[0] == attempt_id]:
                    self._end(*key, -9)

    def _start(self, spec: control.StartWorker) -> None:
        hello = control.WorkerHello(spec.attempt_id, spec.slot, 0)
        worker = PlayedWorker(self._fleet, hello, spec, self)
        self.workers[spec.attempt_id, spec.slot] = worker

    def ended(self, attempt_id: str, slot: int) -> None:
        """A worker has done its work."""
        self._end(attempt_id, slot, 0)

    def _end(self, attempt_id: str, slot: int, code: int) -> None:
        if self.workers.pop((attempt_id, slot), None) is not None:
            self.say(control.WorkerExited(attempt_id, slot, 0, code))


class PlayedWorker(_Played):
    """Says what a worker says whose input is empty."""

    def __init__(
        self,
        fleet: Fleet,
        hello: control.WorkerHello,
        spec: control.StartWorker,
        host: PlayedTaskManager,
    ) -> None:
        self._spec = spec
        self._host = host
        self._plan: Plan = load_plan(str(Path(spec.graph).parent))
        self._last: int | None = None
        """The checkpoint after which all is done."""
        super().__init__(fleet, hello)

    def send(self, message: control.Message) -> None:
        """Hear the job manager."""
        match message:
            case control.Prepare():
                self.say(control.WorkerReady())
            case control.Run():
                if not self._host.endless:
                    for task in self._tasks():
                        self.say(control.EndOfInputReached(task.vertex, task.subtask))
            case control.Trigger(checkpoint_id, _, then):
                if then != AfterBarrier.CONTINUE:
                    self._last = checkpoint_id
                self._acknowledge(checkpoint_id)
            case control.Completed(checkpoint_id) if checkpoint_id == self._last:
                for task in self._tasks():
                    self.say(control.TaskFinished(task.vertex, task.subtask))
            case control.Stop():
                self._host.ended(self._spec.attempt_id, self._spec.slot)

    def report(self, numbers: Mapping[str, float]) -> None:
        """Send these numbers of each subtask."""
        names = [f"{task.vertex}/{task.subtask}" for task in self._tasks()]
        self.say(control.Metrics(dict.fromkeys(names, numbers), {}, {}))

    def _tasks(self) -> list[TaskId]:
        slot = self._spec.slot
        vertices = self._plan.vertices
        return [TaskId(one.id, slot) for one in vertices if slot < one.parallelism]

    def _acknowledge(self, checkpoint_id: int) -> None:
        vertices = {vertex.id: vertex for vertex in self._plan.vertices}
        for task in self._tasks():
            parts = _parts(vertices[task.vertex], task.subtask)
            stored = SubtaskSnapshot(task, checkpoint_id, parts)
            self.say(control.Acknowledged(checkpoint_id, stored.to_json()))


def _parts(vertex: VertexPlan, subtask: int) -> tuple[OperatorPart, ...]:
    first, *others = (operator.uid for operator in vertex.operators)
    splits = {f"split-{subtask}": SplitState(position=0)}
    return (
        OperatorPart(first, Micros(0), splits=splits),
        *(OperatorPart(uid, Micros(0)) for uid in others),
    )
