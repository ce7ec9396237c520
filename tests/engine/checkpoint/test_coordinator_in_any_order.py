"""The coordinator in any order of events: whatever happens, each row is committed once.

model   three subtasks that write rows 0, 1, 2 …; a barrier stages the rows since the last one;
        an acknowledgement tells the position and all that is staged and not yet committed
world   time, requests, lost barriers, acknowledgements late, twice or never, declines, storage
        that fails, and crashes, also between a recorded manifest and its report
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from checkpoint_job import JOB, PLAN, TASKS
from engine.checkpoint.coordination.config import CheckpointConfig
from engine.checkpoint.coordination.coordinator import Coordinator
from engine.checkpoint.coordination.effects import (
    DiscardFolder,
    FailJob,
    NotifyAborted,
    NotifyComplete,
    OperationEnded,
    SendBarrier,
    SnapshotRequest,
    WriteManifest,
)
from engine.checkpoint.coordination.failure import FailureReason
from engine.checkpoint.coordination.stats import CheckpointLog
from engine.checkpoint.format.entries import OperatorPart, SubtaskSnapshot
from engine.elements import AfterBarrier, Barrier, Micros, SnapshotKind
from engine.graph.jobgraph import TaskId

Rows = tuple[int, int]
"""The rows [from, to) of one subtask, staged together."""


@dataclass
class Writer:
    """One subtask: where it is, and what it has staged."""

    position: int = 0
    staged_to: int = 0
    staged: list[tuple[int, Rows]] = field(default_factory=list)
    barriers: list[Barrier] = field(default_factory=list)
    seen: int = 0
    aborted: set[int] = field(default_factory=set)
    stop: int | None = None
    done: bool = False

    def take_barrier(self) -> Barrier | None:
        """Stage what came since the last barrier, unless this one is of no use any more."""
        barrier = self.barriers.pop(0)
        if barrier.checkpoint_id in self.aborted or barrier.checkpoint_id <= self.seen:
            return None
        self.seen = barrier.checkpoint_id
        if self.position > self.staged_to:
            self.staged.append((self.seen, (self.staged_to, self.position)))
            self.staged_to = self.position
        if barrier.then is not AfterBarrier.CONTINUE:
            self.stop = self.seen
        return barrier

    def take_abort(self, checkpoint_id: int) -> None:
        self.aborted.add(checkpoint_id)
        if self.stop == checkpoint_id:
            self.stop = None


@dataclass(frozen=True)
class Part:
    """What a snapshot holds of one subtask."""

    position: int
    staged: tuple[Rows, ...]


class World(RuleBasedStateMachine):
    """One job through all its attempts."""

    def __init__(self) -> None:
        super().__init__()
        self.log = CheckpointLog()
        self.now_ms = 0
        self.committed: Counter[tuple[TaskId, Rows]] = Counter()
        self.begun: list[int] = []
        self.ended: Counter[str] = Counter()
        self.asked: set[str] = set()
        self.parts: dict[int, dict[TaskId, Part]] = {}
        self.recorded: dict[int, str] = {}
        """Folders of snapshots that a restart would choose from."""
        self.discarded: set[str] = set()

    @initialize(concurrent=st.integers(1, 3), pause=st.sampled_from([0, 0, 40]))
    def start(self, concurrent: int, pause: int) -> None:
        self.config = CheckpointConfig(
            "/chk",
            interval_ms=100,
            timeout_ms=900,
            min_pause_ms=pause,
            max_concurrent=concurrent,
            tolerable_failures=2,
        )
        self._begin(1)

    def _begin(self, first_id: int) -> None:
        """A new attempt, from the newest recorded snapshot; sinks commit what it had staged."""
        newest = max(self.recorded, default=None)
        parts = self.parts[newest] if newest is not None else {task: Part(0, ()) for task in TASKS}
        self.writers = {
            task: Writer(position=part.position, staged_to=part.position)
            for task, part in parts.items()
        }
        for task, part in parts.items():
            for rows in part.staged:
                self.committed[task, rows] = 1
        self.acks: list[SubtaskSnapshot] = []
        self.notices: list[tuple[TaskId, NotifyComplete | NotifyAborted]] = []
        self.writing: WriteManifest | None = None
        self.unreported: int | None = None
        self.failed = False
        waiting = self.coordinator.withdraw() if self.begun else []
        self.coordinator = Coordinator(
            JOB, PLAN, self.config, self.log, first_id=first_id, now_ms=self.now_ms
        )
        for request in waiting:
            self.coordinator.request(request, self.now_ms)
        self._carry_out()

    def _carry_out(self) -> None:
        effects = self.coordinator.effects
        while effects:
            match effects.popleft():
                case SendBarrier(barrier):
                    self.begun.append(barrier.checkpoint_id)
                    for writer in self.writers.values():
                        writer.barriers.append(barrier)
                case WriteManifest() as effect:
                    assert self.writing is None
                    assert self.unreported is None
                    self.writing = effect
                case NotifyComplete() | NotifyAborted() as notice:
                    self.notices.extend((task, notice) for task in TASKS)
                case DiscardFolder(folder):
                    self.discarded.add(folder)
                case OperationEnded(operation):
                    self.ended[operation.request.trigger_id] += 1
                case FailJob():
                    self.failed = True

    # What may happen.

    @rule(passed=st.integers(1, 200))
    def time_passes(self, passed: int) -> None:
        self.now_ms += passed
        self.coordinator.tick(self.now_ms)
        self._carry_out()

    @rule(task=st.sampled_from(TASKS), rows=st.integers(1, 3))
    def rows_are_written(self, task: TaskId, rows: int) -> None:
        if self.writers[task].stop is None:
            self.writers[task].position += rows

    @rule(
        kind=st.sampled_from(SnapshotKind),
        then=st.sampled_from([AfterBarrier.CONTINUE, AfterBarrier.CONTINUE, AfterBarrier.STOP]),
    )
    def a_snapshot_is_asked_for(self, kind: SnapshotKind, then: AfterBarrier) -> None:
        if kind is SnapshotKind.CHECKPOINT:
            then = AfterBarrier.CONTINUE
        trigger_id = f"{len(self.asked):032x}"
        self.asked.add(trigger_id)
        self.coordinator.request(SnapshotRequest(trigger_id, kind, then, "/saved"), self.now_ms)
        self._carry_out()

    @rule(data=st.data(), lost=st.sampled_from([False] * 9 + [True]))
    def a_barrier_arrives(self, data: st.DataObject, lost: bool) -> None:
        waiting = [task for task in TASKS if self.writers[task].barriers]
        if not waiting:
            return
        task = data.draw(st.sampled_from(waiting))
        if lost:
            self.writers[task].barriers.pop(0)
        else:
            self._take_barrier(task)

    def _take_barrier(self, task: TaskId) -> None:
        writer = self.writers[task]
        barrier = writer.take_barrier()
        if barrier is None:
            return
        id_ = barrier.checkpoint_id
        staged = tuple(rows for _, rows in writer.staged)
        self.parts.setdefault(id_, {})[task] = Part(writer.position, staged)
        uid = "read" if task.vertex == "a" else "sum"
        self.acks.append(SubtaskSnapshot(task, id_, (OperatorPart(uid, Micros(0)),)))

    @rule()
    def every_subtask_takes_a_barrier_and_acknowledges(self) -> None:
        """What mostly happens, in one step, so that histories get somewhere."""
        for task in TASKS:
            if self.writers[task].barriers:
                self._take_barrier(task)
        for ack in self.acks:
            self.coordinator.ack(ack, self.now_ms)
        self.acks = []
        self._carry_out()

    @precondition(lambda self: self.acks)
    @rule(data=st.data(), kept=st.booleans())
    def an_acknowledgement_arrives(self, data: st.DataObject, kept: bool) -> None:
        ack = data.draw(st.sampled_from(self.acks))
        if not kept:
            self.acks.remove(ack)
        self.coordinator.ack(ack, self.now_ms)
        self._carry_out()

    @precondition(lambda self: self.acks)
    @rule(data=st.data())
    def a_subtask_declines(self, data: st.DataObject) -> None:
        ack = data.draw(st.sampled_from(self.acks))
        self.acks.remove(ack)
        self.coordinator.decline(ack.task, ack.checkpoint_id, "no room", self.now_ms)
        self._carry_out()

    @precondition(lambda self: self.writing)
    @rule(fails=st.sampled_from([False, False, False, True]))
    def a_manifest_is_written(self, fails: bool) -> None:
        assert self.writing is not None
        effect, self.writing = self.writing, None
        if fails:
            self.coordinator.storage_failed(effect.checkpoint_id, "no room", self.now_ms)
            self._carry_out()
            return
        if effect.is_recoverable:
            self.recorded[effect.checkpoint_id] = effect.folder
        self.unreported = effect.checkpoint_id

    @precondition(lambda self: self.unreported is not None)
    @rule()
    def a_manifest_is_reported(self) -> None:
        assert self.unreported is not None
        checkpoint_id, self.unreported = self.unreported, None
        self.coordinator.manifest_written(checkpoint_id, self.now_ms)
        self._carry_out()

    @rule()
    def storage_works_and_everybody_is_told(self) -> None:
        while self.writing is not None:
            self.a_manifest_is_written(False)
            self.a_manifest_is_reported()
        while self.notices:
            self.a_notice_arrives()

    @precondition(lambda self: self.notices)
    @rule()
    def a_notice_arrives(self) -> None:
        task, notice = self.notices.pop(0)
        writer = self.writers[task]
        if isinstance(notice, NotifyAborted):
            writer.take_abort(notice.checkpoint_id)
            return
        while writer.staged and writer.staged[0][0] <= notice.checkpoint_id:
            self.committed[task, writer.staged.pop(0)[1]] = 1
        writer.done = writer.stop == notice.checkpoint_id

    @rule(seldom=st.integers(0, 5))
    def the_job_crashes(self, seldom: int = 0) -> None:
        """The tasks are lost; the manifest on its way is waited for."""
        if seldom:
            return
        self.coordinator.close(FailureReason.TASK_LOST, self.now_ms)
        self._carry_out()
        if self.writing is not None:
            self.a_manifest_is_written(False)
        if self.unreported is not None:
            self.a_manifest_is_reported()
        self._begin(self.coordinator.next_id)

    @precondition(lambda self: self.failed or all(w.done for w in self.writers.values()))
    @rule()
    def the_job_starts_again(self) -> None:
        self.the_job_crashes()

    # What always holds.

    @invariant()
    def ids_only_grow(self) -> None:
        assert self.begun == sorted(set(self.begun))

    @invariant()
    def a_restart_finds_what_it_needs(self) -> None:
        assert not self.discarded & set(self.recorded.values())

    @invariant()
    def every_row_is_committed_at_most_once(self) -> None:
        for task in TASKS:
            ranges = sorted(rows for of, rows in self.committed if of == task)
            pairs = pairwise(ranges)
            assert all(before[1] <= after[0] for before, after in pairs), ranges

    @invariant()
    def requests_end_once(self) -> None:
        assert all(count == 1 for count in self.ended.values())

    def teardown(self) -> None:
        """Let it come to rest, then to its end: nothing is left over, no row is missing."""
        if not hasattr(self, "config"):
            return
        self.coordinator.close(FailureReason.JOB_FAILED, self.now_ms)
        self._carry_out()
        self.the_job_crashes()
        assert set(self.ended) == self.asked
        assert self.log.history().counts.in_progress == 0
        for task in TASKS:
            self.coordinator.end_of_input(task, self.now_ms)
        self._carry_out()
        self.every_subtask_takes_a_barrier_and_acknowledges()
        self.storage_works_and_everybody_is_told()
        for task in TASKS:
            ranges = sorted(rows for of, rows in self.committed if of == task)
            assert sum(to - since for since, to in ranges) == self.writers[task].position
        assert self.coordinator.next_tick_ms is None


TestWorld = World.TestCase
TestWorld.settings = settings(
    max_examples=50,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # a busy machine is no fault
)
