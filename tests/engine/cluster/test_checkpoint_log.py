"""The checkpoint log of a job: the next job manager knows what the last one knew, within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.checkpoint.coordination.failure import FailureReason
from engine.checkpoint.coordination.stats import (
    REMEMBERED,
    CheckpointStats,
    CheckpointStatus,
    RestoredCheckpoint,
    SubtaskCheckpoint,
    VertexCheckpoint,
)
from engine.cluster.jobs.life import JobLife
from engine.cluster.snapshots.checkpoint_log import StoredLog
from engine.cluster.store.rows import JobRow, SnapshotRow
from engine.cluster.store.store import Store
from engine.elements import SnapshotKind

JOB = "ab" * 16


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "engine.db")
    life = JobLife.begin(1)
    store.add_job(JobRow(JOB, "numbers", life.status, life.entered_ms, 1, "/a", "/b"))
    yield store
    store.close()


def ended(id_: int, status: CheckpointStatus = CheckpointStatus.COMPLETED) -> CheckpointStats:
    part = SubtaskCheckpoint(0, 110 + id_, 10, 1, 2, 3, 4, 500, 50, {"sum": 400, "out": 100})
    return CheckpointStats(
        id_,
        SnapshotKind.CHECKPOINT,
        status,
        100 + id_,
        10,
        (VertexCheckpoint("a" * 32, 2, (part, replace(part, index=1))),),
        external_path=f"/chk/chk-{id_}" if status is CheckpointStatus.COMPLETED else None,
    )


def failed(id_: int) -> CheckpointStats:
    return replace(
        ended(id_, CheckpointStatus.FAILED),
        failed_ms=120,
        reason=FailureReason.STORAGE,
        failure="checkpoint failed, it could not be recorded: no room",
    )


def complete(log: StoredLog, store: Store, id_: int) -> None:
    store.add_snapshot(SnapshotRow(JOB, id_, SnapshotKind.CHECKPOINT, f"/chk/chk-{id_}", 1))
    log.put(ended(id_))


def test_the_next_job_manager_knows_all_that_the_last_one_knew(store: Store) -> None:
    log = StoredLog(JOB, store)
    log.put(ended(1, CheckpointStatus.IN_PROGRESS))
    complete(log, store, 1)
    log.put(ended(2, CheckpointStatus.IN_PROGRESS))
    log.put(failed(2))
    log.restored(RestoredCheckpoint(1, 130, False, "/chk/chk-1"))
    assert StoredLog(JOB, store).history() == log.history()


def test_a_checkpoint_that_was_under_way_is_not_counted_for_ever(store: Store) -> None:
    log = StoredLog(JOB, store)
    log.put(ended(1, CheckpointStatus.IN_PROGRESS))
    log.put(failed(1))
    log.put(ended(2, CheckpointStatus.IN_PROGRESS))
    counts = StoredLog(JOB, store).history().counts
    assert (counts.total, counts.in_progress, counts.failed) == (1, 0, 1)


def test_a_checkpoint_whose_files_are_gone_is_known_as_discarded(store: Store) -> None:
    log = StoredLog(JOB, store)
    for id_ in (1, 2, 3):
        complete(log, store, id_)
    store.discard(JOB, 1)
    store.forget_snapshot(JOB, 2)
    found = StoredLog(JOB, store).history().history
    assert [(stats.id, stats.discarded) for stats in found] == [(3, False), (2, True), (1, True)]


def test_the_log_is_bounded_and_the_newest_of_each_sort_stays(store: Store) -> None:
    log = StoredLog(JOB, store)
    complete(log, store, 1)
    for id_ in range(2, 4 * REMEMBERED):
        log.put(failed(id_))
    assert len(store.checkpoints(JOB)) == REMEMBERED + 2
    history = StoredLog(JOB, store).history()
    assert history.latest_completed is not None
    assert history.latest_completed.id == 1
    assert history.counts.failed == 4 * REMEMBERED - 2


def test_what_comes_after_its_job_was_forgotten_holds_nothing_up(store: Store) -> None:
    log = StoredLog("cd" * 16, store)
    log.put(failed(1))
    own = StoredLog(JOB, store)
    own.put(failed(1))
    assert StoredLog(JOB, store).history().counts.failed == 1
    assert store.checkpoints("cd" * 16) == []


def test_what_found_no_room_is_written_later(store: Store) -> None:
    log = StoredLog(JOB, store)
    store._db.execute("PRAGMA query_only=ON")
    log.put(failed(1))
    store._db.execute("PRAGMA query_only=OFF")
    log.put(failed(2))
    assert StoredLog(JOB, store).history().counts.failed == 2
