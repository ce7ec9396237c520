"""The coordinator of an attempt, and everything that is under way from and to it.

    effects --carry out--> mail of the places, manifests on the disk, folders that are deleted
    acks, repeated messages, snapshots that are recorded --> the coordinator

Guarantee  as in a job manager: a snapshot is written, then recorded, then the coordinator hears of
           it, then older ones are deleted; a crash may come between any two.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from random import Random
from typing import TypeVar, assert_never, cast

from engine.checkpoint.coordination.config import CheckpointConfig
from engine.checkpoint.coordination.coordinator import Coordinator
from engine.checkpoint.coordination.effects import (
    DiscardFolder,
    Effect,
    FailJob,
    NotifyAborted,
    NotifyComplete,
    OperationEnded,
    SendBarrier,
    SnapshotRequest,
    WriteManifest,
)
from engine.checkpoint.coordination.failure import FailureReason
from engine.checkpoint.format.entries import SubtaskSnapshot
from engine.checkpoint.format.files import JsonObject
from engine.checkpoint.format.frozen import TaskSnapshot
from engine.checkpoint.format.writer import Chains, write_manifest, write_snapshot
from engine.errors import StorageError
from engine.graph.jobgraph import TaskId
from engine.graph.plan import Plan
from engine.testing.blueprint import JOB_ID
from engine.testing.disk import Disk
from engine.testing.place import Pace, Place, Step
from engine.testing.recorded import CHECKPOINTS
from engine.testing.world import Mishaps, World

T = TypeVar("T")

INTERVAL_MS = 150
"""Often, so that a short input still has many checkpoints."""
TIMEOUT_MS = 700


class JobFailed(Exception):
    """The coordinator asked for a restart, or a connection was lost."""


class Coordination:
    """The half of an attempt that lives in the job manager."""

    def __init__(
        self, plan: Plan, places: Mapping[TaskId, Place], disk: Disk, world: World
    ) -> None:
        self.is_lost = False
        """The job manager is gone: nothing comes from here any more, and nothing arrives."""
        self._places = places
        self._disk = disk
        self._world = world
        self._mishaps = world.mishaps
        self._acks: list[SubtaskSnapshot] = []
        self._repeats: list[tuple[Place, Effect]] = []
        self._written: deque[WriteManifest] = deque()
        self._recorded: deque[WriteManifest] = deque()
        config = CheckpointConfig(
            CHECKPOINTS,
            interval_ms=INTERVAL_MS,
            timeout_ms=TIMEOUT_MS,
            max_concurrent=world.concurrent,
        )
        self.coordinator = Coordinator(
            JOB_ID,
            plan,
            config,
            world.logs[-1],
            first_id=world.records.next_id,
            now_ms=self._now_ms,
        )

    def steps(self) -> list[Step]:
        """What could happen next between the coordinator, the tasks and the storage."""
        if self.is_lost:
            return []
        possible = (
            (self._acks, Pace.MAIL, self._take_ack),
            (self._repeats, Pace.MAIL, self._repeat),
            (self.coordinator.effects, Pace.COORDINATOR, self._carry_out),
            (self._written, Pace.COORDINATOR, self._record),
            (self._recorded, Pace.COORDINATOR, self._report),
            (self._world.records.replaced, Pace.COORDINATOR, self._world.records.retire),
        )
        return [Step(pace, do) for waiting, pace, do in possible if waiting]

    def write(self, snapshot: TaskSnapshot, chains: Chains) -> None:
        """Write the part of a subtask, and acknowledge or decline it."""
        folder = self._world.storage.open(snapshot.barrier.folder)
        try:
            ack = write_snapshot(snapshot, folder, chains=chains)
        except StorageError as error:
            if not self.is_lost:
                id_ = snapshot.barrier.checkpoint_id
                self.coordinator.decline(snapshot.task, id_, str(error), self._now_ms)
        else:
            sent = SubtaskSnapshot.from_json(over_the_wire(ack.to_json()))
            self._acks.extend([sent] * self._copies())

    def request(self, request: SnapshotRequest) -> None:
        """Ask for a snapshot."""
        if not self.is_lost:
            self.coordinator.request(request, self._now_ms)

    def end_of_input(self, task: TaskId) -> None:
        """A subtask will get no more rows."""
        if not self.is_lost:
            self.coordinator.end_of_input(task, self._now_ms)

    def tick(self) -> None:
        """Time has passed."""
        if not self.is_lost:
            self.coordinator.tick(self._now_ms)

    def lose(self) -> None:
        """The job manager is gone, with all that it remembers and had begun to write."""
        self.is_lost = True
        self._disk.kill({None})
        self._world.lose_job_manager()

    def settle(self) -> None:
        """The tasks are gone: end what is under way, so that the next attempt can begin."""
        if self.is_lost:
            return
        self._mishaps = Mishaps()
        self._acks.clear()
        self._repeats.clear()
        self.coordinator.close(FailureReason.TASK_LOST, self._now_ms)
        self._disk.finish(self._world.now)
        while steps := self.steps():
            with suppress(JobFailed):
                steps[0].do()
            self._disk.finish(self._world.now)

    def _take_ack(self) -> None:
        self.coordinator.ack(_take_any(self._acks, self._world.random), self._now_ms)

    def _carry_out(self) -> None:
        """Do the next thing that the coordinator wants."""
        effect = self.coordinator.effects.popleft()
        match effect:
            case SendBarrier():
                self._begin(effect)
            case NotifyComplete():
                self._post(self._places, effect)
            case NotifyAborted(checkpoint_id):
                self._world.records.abort(checkpoint_id)
                self._post(self._places, effect)
            case WriteManifest():
                self._disk.begin(None, partial(self._write_manifest, effect), self._world.now)
            case DiscardFolder(folder):
                self._world.records.discard_folder(folder)
            case FailJob(message=message):
                raise JobFailed(message)
            case OperationEnded():
                return
            case _:
                assert_never(effect)

    def _begin(self, effect: SendBarrier) -> None:
        try:
            self._world.records.begin(effect.barrier)
        except StorageError as error:
            id_ = effect.barrier.checkpoint_id
            self.coordinator.storage_failed(id_, str(error), self._now_ms)
        else:
            self._post(effect.sources, effect)

    def _post(self, tasks: Iterable[TaskId], effect: Effect) -> None:
        for place in map(self._places.__getitem__, tasks):
            copies = self._copies()
            if not copies and not self._may_be_lost(effect):
                msg = f"the connection to {place.id} is lost, and {effect} with it"
                raise JobFailed(msg)
            if copies:
                place.mail.append(effect)
            if copies == 2:
                self._repeats.append((place, effect))

    def _repeat(self) -> None:
        """Let a message arrive again, behind whatever came since."""
        place, effect = _take_any(self._repeats, self._world.random)
        place.mail.append(effect)

    def _copies(self) -> int:
        return self._mishaps.copies(self._world.random)

    def _may_be_lost(self, effect: Effect) -> bool:
        """Whether the job goes on without a message, so that its loss need not be noticed."""
        if isinstance(effect, NotifyComplete):
            return not self.coordinator.is_stopped
        return isinstance(effect, SendBarrier)

    def _write_manifest(self, effect: WriteManifest) -> None:
        try:
            write_manifest(effect.manifest, self._world.storage.open(effect.folder))
        except StorageError as error:
            self.coordinator.storage_failed(effect.checkpoint_id, str(error), self._now_ms)
        else:
            self._written.append(effect)

    def _record(self) -> None:
        """From here on a crash restores the snapshot, although nobody was told of it."""
        effect = self._written.popleft()
        try:
            self._world.records.record(effect)
        except StorageError as error:
            self.coordinator.storage_failed(effect.checkpoint_id, str(error), self._now_ms)
        else:
            self._recorded.append(effect)

    def _report(self) -> None:
        self.coordinator.manifest_written(self._recorded.popleft().checkpoint_id, self._now_ms)

    @property
    def _now_ms(self) -> int:
        return self._world.now // 1_000


def over_the_wire(value: JsonObject) -> JsonObject:
    """What arrives of a message."""
    return cast("JsonObject", json.loads(json.dumps(value)))


def _take_any(items: list[T], random: Random) -> T:
    return items.pop(random.randrange(len(items)))
