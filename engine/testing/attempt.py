"""One attempt of a job in one thread: tasks, channels and a coordinator, moved step by step.

    every step is one thing that could happen next in a cluster: an element arrives, a source is
    polled, a message of the coordinator reaches a task, a snapshot is written, an ack arrives

Order    what cannot overtake in reality cannot here: elements of a channel, messages to a task.
         Everything else is interleaved as the scheduler likes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from functools import partial

from engine.checkpoint.coordination.effects import SnapshotRequest
from engine.checkpoint.format.frozen import RestoredOperator, TaskSnapshot
from engine.checkpoint.format.writer import Chains
from engine.checkpoint.restoring.restore import SubtaskRestore, read_restore
from engine.elements import Micros
from engine.graph.jobgraph import TaskId
from engine.runtime.spec import TaskSpec
from engine.runtime.task import Task
from engine.runtime.watermark_groups import WatermarkGroups
from engine.state.changes import LayerPolicy
from engine.testing.blueprint import Blueprint
from engine.testing.coordination import Coordination, over_the_wire
from engine.testing.disk import Disk
from engine.testing.memory import MemoryStorage
from engine.testing.place import Pace, Place, Step
from engine.testing.world import World

Restore = Mapping[TaskId, SubtaskRestore]


class Attempt:
    """All parts of a running job."""

    def __init__(
        self, blueprint: Blueprint, attempt_id: str, world: World, restore: Restore | None = None
    ) -> None:
        self._world = world
        self._unwritten: list[TaskSnapshot] = []
        self._places = {
            id_: Place(
                Task(
                    _as_wanted(spec, world.layers),
                    _restored((restore or {}).get(id_), world.storage),
                    now=world.now,
                ),
                self._unwritten,
                world.random,
                world.max_rows,
                world.now,
            )
            for id_, spec in blueprint.specs(attempt_id, world.output).items()
        }
        self._chains = {id_: Chains() for id_ in self._places}
        for (source, output), (target, number) in blueprint.routes.items():
            self._places[source].connect(output, number, self._places[target])
        self.tasks = {id_: place.task for id_, place in self._places.items()}
        self._running = list(self._places.values())
        """The places whose processes live."""
        self._groups = WatermarkGroups(blueprint.graph.vertices)
        self._ended: set[TaskId] = set()
        self._disk = Disk(world.weather, world.random)
        self.coordination = Coordination(blueprint.plan, self._places, self._disk, world)

    @property
    def done(self) -> bool:
        """Whether every task has ended by itself."""
        return all(task.done for task in self.tasks.values())

    @property
    def input_ended(self) -> bool:
        """Whether all input was read to its end."""
        return all(task.end_of_input for task in self.tasks.values())

    def lose_tasks(self, lost: Container[TaskId]) -> None:
        """The processes of these subtasks are gone; nobody knows it yet."""
        self._running = [place for place in self._running if place.id not in lost]
        self._unwritten[:] = [each for each in self._unwritten if each.task not in lost]
        self._disk.kill(lost)

    def end(self) -> None:
        """Nothing runs any more, but for the coordinator: it settles what is under way."""
        self.lose_tasks(self.tasks)
        self.coordination.settle()

    def request(self, request: SnapshotRequest) -> None:
        """Ask for a snapshot."""
        self.coordination.request(request)

    def limit(self, rate: float | None, speed: float | None) -> None:
        """Let every source read at most so many rows a second, or so many times real time."""
        sources = [place for place in self._running if place.task.is_source]
        reading = Counter(place.id.vertex for place in sources if not place.task.end_of_input)
        for place in sources:
            place.limit(rate, reading[place.id.vertex], speed)

    def tick(self, passed: int) -> None:
        """Let time pass, µs."""
        now = self._world.now = Micros(self._world.now + passed)
        self._world.weather.pass_to(now)
        for place in self._running:
            place.pass_to(now)
        self.coordination.tick()

    def steps(self) -> list[Step]:
        """Everything that could happen next, in a fixed order."""
        steps: list[Step] = []
        for place in self._running:
            steps += place.steps()
        for place in self._running:
            if place.mail:
                steps.append(Step(Pace.MAIL, place.read_mail))
            if place.progress:
                steps.append(Step(Pace.MAIL, partial(self._report_progress, place)))
            if place.task.end_of_input and place.id not in self._ended:
                steps.append(Step(Pace.MAIL, partial(self._report_end, place.id)))
        for snapshot in self._next_writes():
            steps.append(Step(Pace.STORAGE, partial(self._write, snapshot)))
        return [*steps, *self._disk.steps(self._world.now), *self.coordination.steps()]

    def _next_writes(self) -> Iterable[TaskSnapshot]:
        """Of each subtask the first that is not written, unless one is being written."""
        firsts: dict[TaskId, TaskSnapshot] = {}
        for snapshot in self._unwritten:
            firsts.setdefault(snapshot.task, snapshot)
        return [each for task, each in firsts.items() if not self._disk.is_writing(task)]

    def _write(self, snapshot: TaskSnapshot) -> None:
        self._unwritten.remove(snapshot)
        write = partial(self.coordination.write, snapshot, self._chains[snapshot.task])
        self._disk.begin(snapshot.task, write, self._world.now)

    def _report_progress(self, place: Place) -> None:
        """Tell the watermark group of a source how far it is; and its members, if that is news."""
        aligned = self._groups.report(place.id, place.progress.popleft())
        if aligned is None:
            return
        for member in self._places.values():
            if member.task.spec.watermark_group == aligned.group:
                member.mail.append(aligned)

    def _report_end(self, task: TaskId) -> None:
        self._ended.add(task)
        self.coordination.end_of_input(task)


def _as_wanted(spec: TaskSpec, layers: LayerPolicy | None) -> TaskSpec:
    if layers is None:
        return spec
    return replace(spec, state=replace(spec.state, layers=layers))


def _restored(
    restore: SubtaskRestore | None, storage: MemoryStorage
) -> tuple[RestoredOperator, ...]:
    if restore is None:
        return ()
    return read_restore(SubtaskRestore.from_json(over_the_wire(restore.to_json())), storage.open)
