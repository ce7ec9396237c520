"""Snapshots that were asked for: their turn, what becomes of each, and of the job behind it."""

from __future__ import annotations

import pytest

from checkpoint_job import TASKS, Job, kinds
from engine.checkpoint.coordination.effects import (
    DiscardFolder,
    FailJob,
    NotifyAborted,
    NotifyComplete,
    OperationEnded,
    OperationStatus,
    SendBarrier,
    SnapshotRequest,
    WriteManifest,
)
from engine.checkpoint.coordination.failure import FailureReason
from engine.checkpoint.coordination.requests import REMEMBERED
from engine.elements import AfterBarrier, SnapshotKind


def test_failed_savepoints_never_restart_the_job() -> None:
    job = Job(tolerable_failures=0)
    job.request()
    job.coordinator.decline(TASKS[0], 1, "no", 5)
    assert FailJob not in kinds(job.effects())
    assert job.status() is OperationStatus.FAILED


def test_a_savepoint_gets_its_own_folder_and_reports_where_it_lies() -> None:
    job = Job()
    (effect,) = job.request("ab" * 16)
    assert isinstance(effect, SendBarrier)
    assert effect.barrier.kind is SnapshotKind.SAVEPOINT
    assert effect.barrier.folder == "/saved/savepoint-012345-1-abababab"
    (ended,) = job.complete(1)
    assert isinstance(ended, OperationEnded)
    assert ended.operation.folder == effect.barrier.folder
    assert job.status("ab" * 16) is OperationStatus.COMPLETED


def test_sinks_do_not_commit_with_a_savepoint_that_a_restart_would_not_use() -> None:
    job = Job()
    job.request()
    (write,) = job.ack_all(1)
    assert isinstance(write, WriteManifest)
    assert not write.is_recoverable
    job.coordinator.manifest_written(1, 0)
    assert kinds(job.effects()) == [OperationEnded]


def test_asking_twice_with_one_trigger_id_makes_one_savepoint() -> None:
    job = Job()
    assert kinds(job.request()) == [SendBarrier]
    assert job.request() == []
    job.complete(1)
    assert job.request() == []
    assert job.status() is OperationStatus.COMPLETED


def test_savepoints_come_one_after_the_other_and_beside_a_checkpoint() -> None:
    job = Job(timeout_ms=1_000)
    job.tick(100)
    assert kinds(job.request("1" * 32, now_ms=110)) == [SendBarrier]
    assert job.request("2" * 32, now_ms=110) == []
    assert kinds(job.complete(1, 150)) == [NotifyComplete]
    assert kinds(job.complete(2, 160)) == [OperationEnded, SendBarrier]
    assert job.status("2" * 32) is OperationStatus.IN_PROGRESS


def test_a_savepoint_does_not_put_the_next_checkpoint_off() -> None:
    job = Job(timeout_ms=1_000)
    job.request(now_ms=60)
    assert kinds(job.tick(100)) == [SendBarrier]


def test_a_checkpoint_that_is_asked_for_goes_before_a_periodic_one() -> None:
    job = Job(timeout_ms=1_000)
    job.tick(100)
    assert job.request("1" * 32, kind=SnapshotKind.CHECKPOINT, now_ms=110) == []
    assert kinds(job.complete(1, 300)) == [NotifyComplete, SendBarrier]
    assert kinds(job.complete(2, 310)) == [NotifyComplete, OperationEnded]


def test_requests_that_ended_long_ago_are_forgotten() -> None:
    job = Job(interval_ms=None)
    for number in range(1, REMEMBERED + 3):
        job.request(f"{number:032x}")
        job.coordinator.decline(TASKS[0], number, "no", 0)
    known = [job.coordinator.operation(f"{number:032x}") is not None for number in (1, 2, 3)]
    assert known == [False, False, True]


def test_a_checkpoint_can_be_asked_for() -> None:
    job = Job(interval_ms=None)
    assert job.coordinator.next_tick_ms is None
    (effect,) = job.request(kind=SnapshotKind.CHECKPOINT)
    assert isinstance(effect, SendBarrier)
    assert effect.barrier.folder == "/chk/chk-1"


def test_a_full_checkpoint_builds_on_none_and_the_next_one_builds_on_it() -> None:
    job = Job(timeout_ms=1_000)
    job.tick(100)
    job.complete(1, 110)
    bases = []
    for checkpoint_id, full in ((2, False), (3, True), (4, False)):
        request = SnapshotRequest(f"{checkpoint_id:032x}", SnapshotKind.CHECKPOINT, full=full)
        job.coordinator.request(request, 120)
        (begun, *_) = job.effects()
        assert isinstance(begun, SendBarrier)
        bases.append(begun.barrier.base)
        job.complete(checkpoint_id, 120)
    assert bases == [1, 0, 3]


@pytest.mark.parametrize("then", [AfterBarrier.STOP, AfterBarrier.DRAIN])
def test_nothing_begins_after_a_stop(then: AfterBarrier) -> None:
    job = Job()
    job.request(then=then)
    job.request("2" * 32)
    assert kinds(job.complete(1)) == [NotifyComplete, OperationEnded, OperationEnded]
    assert job.status("2" * 32) is OperationStatus.FAILED
    assert job.tick(10_000) == []
    job.request("3" * 32)
    assert job.status("3" * 32) is OperationStatus.FAILED


def test_a_stop_that_fails_lets_the_job_go_on() -> None:
    job = Job()
    job.request(then=AfterBarrier.STOP)
    job.coordinator.decline(TASKS[0], 1, "no", 5)
    assert FailJob not in kinds(job.effects())
    assert kinds(job.tick(100)) == [SendBarrier]


def test_a_drain_that_fails_restarts_the_job_because_its_windows_have_fired() -> None:
    job = Job()
    job.request(then=AfterBarrier.DRAIN)
    job.coordinator.decline(TASKS[0], 1, "no", 5)
    assert kinds(job.effects())[-1] is FailJob


def test_an_attempt_that_ends_fails_what_is_under_way_and_what_waits() -> None:
    job = Job()
    job.request("1" * 32)
    job.request("2" * 32)
    job.coordinator.close(FailureReason.JOB_CANCELED, 10)
    assert kinds(job.effects()) == [
        NotifyAborted,
        DiscardFolder,
        OperationEnded,
        OperationEnded,
    ]
    operation = job.coordinator.operation("2" * 32)
    assert operation is not None
    assert operation.failure == (
        "savepoint failed: the job was cancelled before the snapshot was complete"
    )
    assert job.coordinator.next_tick_ms is None


@pytest.mark.parametrize("reason", [reason for reason in FailureReason if reason.goes_on])
def test_what_was_not_begun_is_for_the_next_attempt(reason: FailureReason) -> None:
    job = Job()
    job.request("1" * 32)
    job.request("2" * 32)
    job.coordinator.close(reason, 10)
    job.request("3" * 32)
    assert job.status("1" * 32) is OperationStatus.FAILED
    waiting = [request.trigger_id for request in job.coordinator.withdraw()]
    assert waiting == ["2" * 32, "3" * 32]
    assert job.coordinator.withdraw() == []


def test_a_job_that_ends_after_all_fails_what_was_for_its_next_attempt() -> None:
    job = Job()
    job.request("1" * 32)
    job.coordinator.close(FailureReason.TASK_LOST, 10)
    job.request("2" * 32)
    job.coordinator.close(FailureReason.JOB_CANCELED, 20)
    assert job.status("2" * 32) is OperationStatus.FAILED
    assert job.coordinator.withdraw() == []
