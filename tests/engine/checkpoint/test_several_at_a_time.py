"""Several snapshots under way: which may be, how each ends, and what the others hear of it."""

from __future__ import annotations

from checkpoint_job import TASKS, Job, kinds
from engine.checkpoint.coordination.effects import (
    DiscardFolder,
    NotifyAborted,
    NotifyComplete,
    OperationEnded,
    OperationStatus,
    SendBarrier,
    WriteManifest,
)
from engine.checkpoint.coordination.failure import Ack, FailureReason
from engine.checkpoint.coordination.stats import CheckpointStatus
from engine.elements import AfterBarrier, SnapshotKind


def two_under_way(**config: int) -> Job:
    """Checkpoint 1 since 100 ms, checkpoint 2 since 200 ms."""
    job = Job(max_concurrent=2, timeout_ms=1_000, **config)
    assert kinds(job.tick(100)) == [SendBarrier]
    assert kinds(job.tick(200)) == [SendBarrier]
    return job


def test_the_next_checkpoint_begins_in_time_although_one_is_slow() -> None:
    job = two_under_way()
    assert job.tick(300) == []
    assert job.coordinator.next_tick_ms == 1_100
    assert kinds(job.complete(1, 310)) == [NotifyComplete, SendBarrier]


def test_a_pause_between_checkpoints_means_one_at_a_time() -> None:
    job = Job(max_concurrent=5, timeout_ms=1_000, min_pause_ms=10)
    job.tick(100)
    assert job.tick(900) == []


def test_both_complete_when_their_acknowledgements_come_in_any_order() -> None:
    job = two_under_way()
    for checkpoint_id, task in [(2, 0), (1, 0), (1, 1), (2, 1), (1, 2)]:
        assert job.ack(TASKS[task], checkpoint_id) is Ack.ACCEPTED
    job.coordinator.manifest_written(1, 250)
    assert kinds(job.effects()) == [WriteManifest, NotifyComplete]
    job.ack(TASKS[2], 2)
    job.coordinator.manifest_written(2, 260)
    assert NotifyComplete(2) in job.effects()
    assert job.log.history().counts.completed == 2


def test_a_complete_checkpoint_subsumes_the_older_ones_that_are_under_way() -> None:
    job = two_under_way()
    assert job.complete(2, 250)[:3] == [
        NotifyComplete(2),
        NotifyAborted(1),
        DiscardFolder("/chk/chk-1"),
    ]
    failed = job.log.history().latest_failed
    assert failed is not None
    assert failed.reason is FailureReason.SUBSUMED
    assert failed.failure == (
        "checkpoint 1 failed, a newer one was complete before it: checkpoint 2"
    )


def test_what_comes_of_a_subsumed_checkpoint_later_is_deleted() -> None:
    job = two_under_way()
    job.complete(2, 250)
    assert job.ack(TASKS[0], 1) is Ack.LATE
    assert job.effects() == [DiscardFolder("/chk/chk-1")]


def test_subsumed_checkpoints_restart_no_job() -> None:
    job = Job(max_concurrent=2, timeout_ms=10_000, tolerable_failures=0)
    for first in range(1, 9, 2):
        job.tick(first * 100)
        job.tick(first * 100 + 100)
        job.complete(first + 1, first * 100 + 150)
    assert job.log.history().counts.failed == 4
    assert not job.coordinator.is_stopped


def test_who_asked_for_a_subsumed_checkpoint_is_told() -> None:
    job = Job(max_concurrent=2, timeout_ms=1_000)
    job.request(kind=SnapshotKind.CHECKPOINT, now_ms=0)
    job.tick(100)
    assert OperationEnded in kinds(job.complete(2, 150))
    operation = job.coordinator.operation("f" * 32)
    assert operation is not None
    assert operation.reason is FailureReason.SUBSUMED


def test_a_savepoint_is_never_subsumed() -> None:
    job = Job(timeout_ms=1_000)
    job.request()
    job.tick(100)
    assert kinds(job.complete(2, 150)) == [NotifyComplete]
    assert kinds(job.complete(1, 160)) == [OperationEnded]
    assert job.status() is OperationStatus.COMPLETED


def test_a_savepoint_subsumes_nothing_because_a_restart_does_not_begin_there() -> None:
    job = Job(timeout_ms=1_000)
    job.tick(100)
    job.request(now_ms=110)
    assert kinds(job.complete(2, 150)) == [OperationEnded]
    assert kinds(job.complete(1, 160)) == [NotifyComplete]


def test_each_expires_by_its_own_time() -> None:
    job = Job(max_concurrent=2, timeout_ms=190)
    job.tick(100)
    job.tick(200)
    assert job.coordinator.next_tick_ms == 290
    assert job.tick(290)[:1] == [NotifyAborted(1)]
    assert NotifyAborted(2) not in job.tick(389)
    assert NotifyAborted(2) in job.tick(390)


def test_an_aborted_one_leaves_the_other_alone() -> None:
    job = two_under_way()
    job.coordinator.decline(TASKS[0], 2, "no room", 210)
    assert job.effects()[:2] == [NotifyAborted(2), DiscardFolder("/chk/chk-2")]
    assert NotifyComplete(1) in job.complete(1, 220)


def test_manifests_are_written_one_after_another() -> None:
    job = two_under_way()
    assert kinds(job.ack_all(1)) == [WriteManifest]
    assert job.ack_all(2) == []
    job.coordinator.storage_failed(1, "no room", 220)
    written = job.effects()
    assert kinds(written)[:3] == [NotifyAborted, DiscardFolder, WriteManifest]
    job.coordinator.manifest_written(2, 230)
    assert NotifyComplete(2) in job.effects()


def test_one_that_waits_too_long_for_another_to_be_recorded_expires() -> None:
    job = Job(max_concurrent=2, timeout_ms=150)
    job.tick(100)
    job.tick(200)
    job.ack_all(1)
    job.ack_all(2)
    assert NotifyAborted(2) in job.tick(350)
    failed = job.log.history().latest_failed
    assert failed is not None
    assert str(failed.failure).endswith("storage was busy with an older one for 0.15 s")


def test_a_stop_begins_beside_a_checkpoint_and_ends_it() -> None:
    job = Job(timeout_ms=1_000)
    job.tick(100)
    assert kinds(job.request(then=AfterBarrier.STOP, now_ms=110)) == [SendBarrier]
    assert kinds(job.complete(2, 150)) == [
        NotifyComplete,
        OperationEnded,
        NotifyAborted,
        DiscardFolder,
    ]
    statuses = [stats.status for stats in job.log.history().history]
    assert statuses == [CheckpointStatus.COMPLETED, CheckpointStatus.FAILED]


def test_a_stop_waits_for_a_savepoint_and_nothing_begins_beside_a_stop() -> None:
    job = Job(max_concurrent=3, timeout_ms=1_000)
    job.request("1" * 32)
    assert job.request("2" * 32, AfterBarrier.STOP) == []
    assert kinds(job.complete(1)) == [OperationEnded, SendBarrier]
    assert job.tick(500) == []
    assert job.request("3" * 32, now_ms=500) == []


def test_the_final_checkpoint_waits_for_a_savepoint() -> None:
    job = Job(interval_ms=None)
    job.request()
    for task in TASKS:
        job.coordinator.end_of_input(task, 10)
    assert job.effects() == []
    (_, final) = job.complete(1, 20)
    assert isinstance(final, SendBarrier)
    assert final.barrier.then is AfterBarrier.STOP


def test_an_attempt_that_ends_gives_all_up_but_the_one_being_recorded() -> None:
    job = two_under_way()
    job.ack_all(1)
    job.ack_all(2)
    job.coordinator.close(FailureReason.TASK_LOST, 220)
    assert job.effects() == [NotifyAborted(2), DiscardFolder("/chk/chk-2")]
    job.coordinator.manifest_written(1, 230)
    assert job.effects() == [NotifyComplete(1)]
