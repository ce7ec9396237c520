"""The coordinator: when snapshots begin, and what becomes of them."""

from __future__ import annotations

from checkpoint_job import PLAN, TASKS, Job, kinds
from engine.checkpoint.coordination.effects import (
    DiscardFolder,
    FailJob,
    NotifyAborted,
    NotifyComplete,
    SendBarrier,
    WriteManifest,
)
from engine.checkpoint.coordination.failure import Ack, FailureReason
from engine.checkpoint.coordination.stats import CheckpointStatus
from engine.elements import AfterBarrier, SnapshotKind
from engine.graph.jobgraph import TaskId


def test_the_first_checkpoint_begins_after_one_interval_at_the_sources() -> None:
    job = Job(first_id=7)
    assert job.coordinator.next_tick_ms == 100
    assert job.tick(99) == []
    (effect,) = job.tick(100)
    assert isinstance(effect, SendBarrier)
    assert effect.sources == (TaskId("a", 0),)
    assert effect.barrier.checkpoint_id == 7
    assert effect.barrier.folder == "/chk/chk-7"
    assert effect.barrier.triggered_ms == 100


def test_the_last_acknowledgement_asks_for_the_manifest_with_all_parts() -> None:
    job = Job()
    job.tick(100)
    job.ack(TASKS[2], 1)
    job.ack(TASKS[0], 1)
    assert job.effects() == []
    job.ack(TASKS[1], 1)
    (effect,) = job.effects()
    assert isinstance(effect, WriteManifest)
    assert effect.is_recoverable
    entries = effect.manifest.operators
    assert [(entry.uid, entry.parallelism, entry.watermark) for entry in entries] == [
        ("read", 1, 10),
        ("sum", 2, 10),
    ]
    assert effect.manifest.plan_hash == PLAN.hash


def test_sinks_are_told_only_when_the_manifest_is_written() -> None:
    job = Job()
    job.tick(100)
    assert NotifyComplete not in kinds(job.ack_all(1))
    assert job.coordinator.is_writing
    job.coordinator.manifest_written(1, 130)
    assert job.effects() == [NotifyComplete(1)]
    latest = job.log.history().latest_completed
    assert latest is not None
    assert (latest.id, latest.duration_ms, latest.external_path) == (1, 30, "/chk/chk-1")


def test_the_next_one_begins_one_interval_after_the_last_began() -> None:
    job = Job()
    job.tick(100)
    job.complete(1, 120)
    assert job.tick(199) == []
    assert kinds(job.tick(200)) == [SendBarrier]


def test_a_slow_checkpoint_delays_the_next_and_the_pause_is_kept() -> None:
    job = Job(timeout_ms=1_000, min_pause_ms=30)
    job.tick(100)
    assert job.tick(250) == []
    job.complete(1, 260)
    assert job.tick(289) == []
    assert kinds(job.tick(290)) == [SendBarrier]


def test_acknowledgements_have_four_outcomes() -> None:
    job = Job()
    job.tick(100)
    assert job.ack(TASKS[0], 1) is Ack.ACCEPTED
    assert job.ack(TASKS[0], 1) is Ack.DUPLICATE
    assert job.ack(TaskId("b", 2), 1) is Ack.UNKNOWN
    assert job.ack(TaskId("x", 0), 1) is Ack.UNKNOWN
    assert job.ack(TASKS[0], 2) is Ack.UNKNOWN
    job.tick(150)
    assert job.ack(TASKS[1], 1) is Ack.LATE


def test_a_checkpoint_expires_at_its_timeout_and_names_who_is_missing() -> None:
    job = Job()
    job.tick(100)
    job.ack(TASKS[0], 1)
    assert job.coordinator.next_tick_ms == 150
    assert job.tick(149) == []
    assert job.tick(150) == [NotifyAborted(1), DiscardFolder("/chk/chk-1")]
    failed = job.log.history().latest_failed
    assert failed is not None
    assert failed.reason is FailureReason.EXPIRED
    assert failed.failure == (
        "checkpoint 1 failed, not every subtask acknowledged in time: "
        "sum 0, sum 1 did not within 0.05 s"
    )


def test_what_a_slow_subtask_wrote_after_the_abort_is_deleted_too() -> None:
    job = Job()
    job.tick(100)
    job.tick(150)
    assert job.ack(TASKS[0], 1) is Ack.LATE
    assert job.effects() == [DiscardFolder("/chk/chk-1")]


def test_what_a_subtask_left_that_gave_up_after_the_abort_is_deleted_too() -> None:
    job = Job()
    job.tick(100)
    job.tick(150)
    job.coordinator.decline(TASKS[0], 1, "the folder is gone", 160)
    assert job.effects() == [DiscardFolder("/chk/chk-1")]


def test_a_late_acknowledgement_never_deletes_a_complete_checkpoint() -> None:
    job = Job()
    job.tick(100)
    job.complete(1)
    assert job.ack(TASKS[0], 1) is Ack.LATE
    assert job.effects() == []


def test_a_declined_checkpoint_is_aborted_with_the_reason() -> None:
    job = Job()
    job.tick(100)
    job.coordinator.decline(TASKS[1], 1, "the disk is full", 110)
    assert kinds(job.effects()) == [NotifyAborted, DiscardFolder]
    failed = job.log.history().latest_failed
    assert failed is not None
    assert str(failed.failure).endswith("could not write its part: sum 0: the disk is full")


def test_a_decline_of_an_ended_checkpoint_changes_nothing() -> None:
    job = Job()
    job.tick(100)
    job.complete(1, 110)
    job.coordinator.decline(TASKS[1], 1, "late", 120)
    assert job.effects() == []


def test_too_many_failures_in_a_row_restart_the_job() -> None:
    job = Job(tolerable_failures=1)
    for checkpoint_id, fails in [(1, False), (2, True)]:
        job.tick(checkpoint_id * 100)
        job.coordinator.storage_failed(checkpoint_id, "no room", checkpoint_id * 100)
        assert (FailJob in kinds(job.effects())) is fails
    assert job.coordinator.next_tick_ms is None


def test_failures_within_the_patience_do_not_restart_the_job() -> None:
    job = Job(tolerable_failures=0, patience_ms=300)
    for checkpoint_id, fails in [(1, False), (2, False), (3, False), (4, True)]:
        job.tick(checkpoint_id * 100)
        job.coordinator.storage_failed(checkpoint_id, "no room", checkpoint_id * 100)
        assert (FailJob in kinds(job.effects())) is fails


def test_patience_begins_anew_after_a_success() -> None:
    job = Job(tolerable_failures=0, patience_ms=150)
    for checkpoint_id in range(1, 12):
        now_ms = checkpoint_id * 100
        job.tick(now_ms)
        if checkpoint_id % 2:
            job.coordinator.storage_failed(checkpoint_id, "no room", now_ms)
            assert FailJob not in kinds(job.effects())
        else:
            job.complete(checkpoint_id, now_ms)


def test_a_completed_checkpoint_forgives_the_failures_before_it() -> None:
    job = Job(tolerable_failures=1)
    for checkpoint_id in range(1, 8):
        now_ms = checkpoint_id * 100
        job.tick(now_ms)
        if checkpoint_id % 2:
            job.coordinator.decline(TASKS[0], checkpoint_id, "no", now_ms)
            assert FailJob not in kinds(job.effects())
        else:
            job.complete(checkpoint_id, now_ms)


def test_one_final_checkpoint_is_taken_when_all_input_has_ended() -> None:
    job = Job(interval_ms=None)
    for task in TASKS:
        assert job.effects() == []
        job.coordinator.end_of_input(task, 40)
    (effect,) = job.effects()
    assert isinstance(effect, SendBarrier)
    assert effect.barrier.then is AfterBarrier.STOP
    assert effect.barrier.kind is SnapshotKind.CHECKPOINT
    assert job.complete(1, 60) == [NotifyComplete(1)]
    assert job.coordinator.next_tick_ms is None


def test_the_final_checkpoint_is_tried_again() -> None:
    job = Job(min_pause_ms=10)
    for task in TASKS:
        job.coordinator.end_of_input(task, 40)
    job.effects()
    job.coordinator.decline(TASKS[0], 1, "no", 50)
    job.effects()
    (effect,) = job.tick(140)
    assert isinstance(effect, SendBarrier)
    assert effect.barrier.then is AfterBarrier.STOP


def test_a_manifest_on_its_way_still_completes_after_the_attempt_has_ended() -> None:
    job = Job()
    job.tick(100)
    job.ack_all(1)
    job.coordinator.close(FailureReason.TASK_LOST, 110)
    assert job.coordinator.is_writing
    assert job.effects() == []
    job.coordinator.manifest_written(1, 120)
    assert job.effects() == [NotifyComplete(1)]
    assert job.tick(10_000) == []


def test_statistics_grow_with_each_acknowledgement() -> None:
    job = Job()
    job.tick(100)
    job.ack(TASKS[2], 1, 112)
    (stats,) = job.log.history().history
    assert stats.status is CheckpointStatus.IN_PROGRESS
    assert (stats.num_subtasks, stats.duration_ms) == (3, 12)
    (subtask,) = stats.subtasks()
    assert (subtask.index, subtask.ack_ms, subtask.duration_ms) == (1, 112, 12)
    assert (subtask.start_delay_ms, subtask.alignment_ms) == (1, 2)
    assert (subtask.sync_ms, subtask.async_ms) == (3, 4)


def test_counts_and_latest_are_kept_apart_from_the_ring() -> None:
    job = Job()
    job.tick(100)
    job.complete(1, 110)
    for checkpoint_id in range(2, 70):
        job.request(f"{checkpoint_id:032x}", now_ms=120)
        job.coordinator.decline(TASKS[0], checkpoint_id, "no", 120)
    history = job.log.history()
    assert (history.counts.total, history.counts.completed, history.counts.failed) == (69, 1, 68)
    assert history.latest_completed is not None
    assert history.latest_completed.id == 1
    assert history.history[0].id == 69
