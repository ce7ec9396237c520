"""Bad input and missing things: one clear sentence each, and everything else runs on."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from engine.rest.client import NotFound, Refused
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import (
    ClaimMode,
    Program,
    RunRequest,
    SavepointRequest,
    StopRequest,
)
from engine.testing.cluster import PATIENCE_S, LocalCluster, wait_until
from integration.conftest import JOB_FILE, Bench

pytestmark = pytest.mark.integration


def refusal(bench: Bench, file: str, content: str) -> str:
    """The sentence with which a job file is refused; nothing has started."""
    before = len(bench.client.jobs())
    artifact = bench.client.upload(file, content.encode())
    with pytest.raises(Refused) as refused:
        bench.client.run(RunRequest(Program(artifact)))
    assert len(bench.client.jobs()) == before
    return str(refused.value)


def test_a_syntax_error_is_named_with_its_line(bench: Bench) -> None:
    assert "line 2" in refusal(bench, "broken.py", "import engine\ndef f(:\n")


def test_a_job_file_that_kills_its_process_is_refused(bench: Bench) -> None:
    sentence = refusal(bench, "exit.py", "import os; print('gone', flush=True); os._exit(3)")
    assert "exit.py could not be built: gone" in sentence


def test_a_job_file_without_execute_is_refused(bench: Bench) -> None:
    assert "execute" in refusal(bench, "empty.py", "import engine")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "snapshot is not there"), ("", "is not a snapshot: it has no _metadata")],
    ids=["no folder", "no _metadata"],
)
def test_a_snapshot_that_cannot_be_used_starts_nothing(
    bench: Bench, tmp_path: Path, content: str | None, sentence: str
) -> None:
    folder = bench.cluster.home / "savepoints" / tmp_path.name
    if content is not None:
        folder.mkdir()
    before = len(bench.client.jobs())
    with pytest.raises(Refused, match=sentence):
        bench.submit(savepoint=str(folder))
    assert len(bench.client.jobs()) == before


def test_a_job_id_can_be_used_once(bench: Bench) -> None:
    artifact = bench.client.upload(JOB_FILE.name, JOB_FILE.read_bytes())
    program = Program(artifact, (str(bench.data), str(bench.output), "0"))
    request = RunRequest(program, job_id="ab" * 16)
    assert bench.client.run(request) == "ab" * 16
    with pytest.raises(Refused, match=r"job id abab.* is taken"):
        bench.client.run(request)
    assert bench.await_end("ab" * 16) is JobStatus.FINISHED


def test_code_that_always_fails_fails_the_job_after_three_attempts(bench: Bench) -> None:
    file = Path(__file__).parent / "poison_job.py"
    job = bench.submit_file(file, [str(bench.data), str(bench.output)], parallelism=1)
    assert bench.await_end(job) is JobStatus.FAILED
    failures = bench.client.job_failures(job)
    assert len(failures) == 3
    assert "thirteen" in failures[0].sentence
    assert failures[0].task is not None
    assert "thirteen" in str(bench.client.job_result(job))


def test_a_job_waits_for_slots_and_can_be_cancelled_meanwhile(bench: Bench) -> None:
    job = bench.submit(parallelism=5)
    assert bench.status(job) is JobStatus.CREATED
    assert bench.client.job(job).waiting_for == "waits for 5 slots, 4 free"
    bench.client.cancel(job)
    assert bench.await_end(job) is JobStatus.CANCELED
    bench.client.cancel(job)


def test_a_job_that_waits_for_slots_starts_when_they_are_free(bench: Bench) -> None:
    first = bench.submit(parallelism=4, speed=3_600)
    second = bench.submit(parallelism=1)
    bench.await_status(first, JobStatus.RUNNING)
    assert bench.status(second) is JobStatus.CREATED
    bench.client.cancel(first)
    assert bench.await_end(second) is JobStatus.FINISHED
    assert bench.await_end(first) is JobStatus.CANCELED


def test_the_same_trigger_id_is_the_same_savepoint(bench: Bench) -> None:
    job = bench.submit(parallelism=1, speed=3_600)
    bench.await_status(job, JobStatus.RUNNING)
    request = SavepointRequest(trigger_id="cd" * 16)
    assert {bench.client.trigger_savepoint(job, request) for _ in range(2)} == {"cd" * 16}
    location = bench.await_savepoint(job, "cd" * 16)
    assert bench.await_savepoint(job, bench.client.trigger_savepoint(job, request)) == location
    bench.client.cancel(job)
    bench.await_end(job)


def test_a_drained_job_fires_every_window(bench: Bench) -> None:
    job = bench.submit(parallelism=2, speed=3_600)
    bench.await_status(job, JobStatus.RUNNING)
    bench.await_checkpoints(job, 1)
    bench.await_savepoint(job, bench.client.stop(job, StopRequest(drain=True)))
    assert bench.status(job) is JobStatus.FINISHED


def test_a_savepoint_in_a_folder_that_cannot_be_written_fails_and_the_job_runs_on(
    bench: Bench, tmp_path: Path
) -> None:
    job = bench.submit(parallelism=1, speed=3_600)
    bench.await_status(job, JobStatus.RUNNING)
    (tmp_path / "file").write_text("in the way")
    request = SavepointRequest(str(tmp_path / "file" / "savepoints"))
    trigger = bench.client.trigger_savepoint(job, request)
    wait_until(lambda: bench.client.savepoint_status(job, trigger).done, "the savepoint is over")
    assert "cannot be written" in str(bench.client.savepoint_status(job, trigger).failure)
    bench.await_checkpoints(job, 1)
    assert bench.status(job) is JobStatus.RUNNING
    bench.client.cancel(job)
    bench.await_end(job)


def test_a_savepoint_is_deleted_only_when_no_job_needs_it(bench: Bench) -> None:
    job = bench.submit(parallelism=1, speed=3_600)
    bench.await_status(job, JobStatus.RUNNING)
    savepoint = bench.await_savepoint(job, bench.client.stop(job, StopRequest()))
    waiting = bench.submit(parallelism=5, savepoint=savepoint)

    def dispose() -> str | None:
        trigger = bench.client.dispose_savepoint(savepoint)
        wait_until(lambda: bench.client.disposal_status(trigger).done, "the disposal is over")
        return bench.client.disposal_status(trigger).failure

    assert f"is needed by job {waiting}" in str(dispose())
    bench.client.cancel(waiting)
    bench.await_end(waiting)
    assert dispose() is None
    assert not Path(savepoint).exists()


def test_an_unknown_job_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFound, match=r"job 0{32} not found"):
        bench.client.job("0" * 32)


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = job_manager("--home", str(tmp_path), "--port", port)
    assert result.returncode == 1
    assert result.stderr == (
        f"headwater: port {port} on 127.0.0.1 cannot be used: another process listens there; "
        "pass another one with --port\n"
    )


def test_a_home_belongs_to_one_job_manager(cluster: LocalCluster) -> None:
    result = job_manager("--home", str(cluster.home), "--port", "0")
    assert result.returncode == 1
    assert "is in use by another job manager; pass another --home" in result.stderr


def job_manager(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "engine.cluster.jobmanager", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_a_claimed_snapshot_is_deleted_once_it_is_replaced(bench: Bench) -> None:
    first = bench.submit(speed=3_600)
    bench.await_status(first, JobStatus.RUNNING)
    stopped = bench.await_savepoint(first, bench.client.stop(first, StopRequest()))
    artifact = bench.client.upload(JOB_FILE.name, JOB_FILE.read_bytes())
    arguments = (str(bench.data), str(bench.output), "3600")
    seldom = {"execution.checkpointing.interval": "1h"}
    user = bench.client.run(
        RunRequest(Program(artifact, arguments, 2, seldom), savepoint_path=stopped)
    )
    claim = RunRequest(
        Program(artifact, arguments, 2), savepoint_path=stopped, claim=ClaimMode.CLAIM
    )
    with pytest.raises(Refused, match=f"cannot be claimed: job {user} runs and may need it"):
        bench.client.run(claim)
    bench.client.cancel(user)
    bench.await_status(user, JobStatus.CANCELED)
    job = bench.client.run(claim)
    bench.await_status(job, JobStatus.RUNNING)
    wait_until(lambda: not Path(stopped).exists(), "the claimed savepoint is deleted")
    bench.cluster.kill_worker()
    bench.await_checkpoints(job, 1)
    bench.client.cancel(job)
    bench.await_status(job, JobStatus.CANCELED)
