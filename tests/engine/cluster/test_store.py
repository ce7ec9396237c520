"""What the job manager remembers, read by another one after it."""

import asyncio
from dataclasses import replace

import pytest

from engine.cluster.store.rows import JobRow, OperationRow, ProcessRow, SnapshotRow
from engine.cluster.store.store import FAILURES_KEPT, Store
from engine.elements import SnapshotKind
from engine.errors import StorageError
from engine.rest.model.cluster import Artifact
from engine.rest.model.jobs import JobStatus

JOB = JobRow(
    job_id="a" * 32,
    name="flights",
    status=JobStatus.CREATED,
    entered_ms={JobStatus.CREATED: 5},
    submitted_ms=5,
    folder="/jobs/a",
    code="/artifacts/x",
    arguments=("--speed", "0"),
    settings={"parallelism.default": "2"},
    restore_path="/savepoints/s-1",
    next_checkpoint_id=8,
)


@pytest.fixture
def reopen(tmp_path):
    opened = []

    def open_again():
        opened.append(Store(tmp_path / "engine.db"))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen):
    store = reopen()
    store.add_job(JOB)
    return store


def snapshot(checkpoint_id, kind=SnapshotKind.CHECKPOINT, ends_job=False):
    return SnapshotRow(JOB.job_id, checkpoint_id, kind, f"/s/{checkpoint_id}", 9, ends_job)


def test_a_job_is_read_as_it_was_written(store, reopen):
    assert list(reopen().jobs()) == [JOB]


def test_its_state_and_its_next_checkpoint_survive(store, reopen):
    entered = {JobStatus.CREATED: 5, JobStatus.RUNNING: 6}
    store.set_status(JOB.job_id, JobStatus.RUNNING, entered)
    store.reserve_checkpoint(JOB.job_id, 12)
    store.reserve_checkpoint(JOB.job_id, 11)
    (job,) = reopen().jobs()
    assert (job.status, job.entered_ms) == (JobStatus.RUNNING, entered)
    assert job.next_checkpoint_id == 12


def test_attempts_are_counted(store):
    store.add_attempt(JOB.job_id, "one", 0, 1, None)
    store.add_attempt(JOB.job_id, "two", 1, 2, "/s/1")
    assert store.attempts(JOB.job_id) == 2


def test_a_restart_begins_at_the_newest_checkpoint_not_at_a_persons_savepoint(store, reopen):
    assert store.recovery_point(JOB.job_id) is None
    store.add_snapshot(snapshot(3))
    store.add_snapshot(snapshot(4, SnapshotKind.SAVEPOINT))
    assert reopen().recovery_point(JOB.job_id) == snapshot(3)


def test_a_restart_begins_at_the_savepoint_that_stopped_the_job(store):
    store.add_snapshot(snapshot(3))
    store.add_snapshot(snapshot(4, SnapshotKind.SAVEPOINT, ends_job=True))
    assert store.recovery_point(JOB.job_id).checkpoint_id == 4


def test_only_checkpoints_beyond_the_retained_ones_are_replaced(store):
    for checkpoint_id in (1, 2, 3, 4):
        store.add_snapshot(snapshot(checkpoint_id))
    store.add_snapshot(snapshot(5, SnapshotKind.SAVEPOINT))
    assert [row.checkpoint_id for row in store.replaced_checkpoints(JOB.job_id, 3)] == [1]


def test_a_discarded_checkpoint_is_not_restored_and_stays_until_its_files_are_gone(store):
    for checkpoint_id in (1, 2):
        store.add_snapshot(snapshot(checkpoint_id))
    store.discard(JOB.job_id, 1)
    assert [row.checkpoint_id for row in store.replaced_checkpoints(JOB.job_id, 1)] == [1]
    store.discard(JOB.job_id, 2)
    assert store.recovery_point(JOB.job_id) is None
    store.forget_snapshot(JOB.job_id, 1)
    assert store.replaced_checkpoints(JOB.job_id, 1) == []


def test_only_the_newest_failures_are_kept(store):
    for at in range(FAILURES_KEPT + 5):
        store.add_failure(JOB.job_id, at, at)
    kept = store.failures(JOB.job_id, 1_000)
    assert kept == list(range(FAILURES_KEPT + 4, 4, -1))


def test_an_operation_is_open_until_it_is_done(store, reopen):
    row = OperationRow("t" * 32, JOB.job_id, "savepoint", 3)
    store.put_operation(row)
    assert reopen().open_operations() == [row]
    done = OperationRow(row.trigger_id, JOB.job_id, "savepoint", 3, True, "/s/9", 9)
    store.put_operation(done)
    assert store.open_operations() == []
    assert reopen().operation(row.trigger_id) == done


def test_failures_come_newest_first(store):
    for at in (1, 2, 3):
        store.add_failure(JOB.job_id, at, {"message": str(at)})
    assert store.failures(JOB.job_id, 2) == [{"message": "3"}, {"message": "2"}]


def test_more_may_become_known_of_the_newest_failure(store):
    for at in (1, 2):
        store.add_failure(JOB.job_id, at, at)
    store.amend_failure(JOB.job_id, 20)
    assert store.failures(JOB.job_id) == [20, 1]


def test_processes_are_forgotten_when_they_are_gone(store, reopen):
    store.add_process(ProcessRow(7, 1.5, "worker"))
    assert reopen().processes() == [ProcessRow(7, 1.5, "worker")]
    store.forget_process(7)
    assert reopen().processes() == []


def test_uploading_a_file_again_only_renews_its_date(store):
    for at in (1, 2):
        store.add_artifact(Artifact("h_job.py", "job.py", at, 10))
    assert store.artifacts() == [Artifact("h_job.py", "job.py", 2, 10)]
    store.forget_artifact("h_job.py")
    assert store.artifact("h_job.py") is None


async def test_many_wait_for_the_disk_together(store):
    store.add_snapshot(snapshot(3))
    first = asyncio.create_task(store.on_disk())
    await asyncio.sleep(0)
    others = [asyncio.create_task(store.on_disk()) for _ in range(20)]
    await asyncio.gather(first, *others)
    assert store._flushing.count <= 2


async def test_a_flush_that_fails_is_one_sentence_and_the_next_one_tries_again(store, tmp_path):
    log = tmp_path / "engine.db-wal"
    content = log.read_bytes()
    log.unlink()
    log.symlink_to(log)
    with pytest.raises(StorageError, match=r"store .* cannot be flushed: .*; check its disk"):
        await store.on_disk()
    log.unlink()
    log.write_bytes(content)
    await store.on_disk()


async def test_the_log_stays_small(store, tmp_path):
    for number in range(3_000):
        store.add_snapshot(replace(snapshot(number), path="x" * 1_000))
    await store.on_disk()
    store.add_snapshot(snapshot(1))
    assert (tmp_path / "engine.db-wal").stat().st_size < 20_000_000
    assert len(store.snapshot_paths(JOB.job_id)) == 2
