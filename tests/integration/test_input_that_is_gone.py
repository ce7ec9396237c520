"""A savepoint older than the files that are left, with real processes: refused, or agreed to."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from engine.checkpoint.restoring.restore import load_manifest
from engine.rest.client import Refused
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import PreflightRequest, Program, RunRequest, StopRequest
from engine.testing.cluster import wait_until
from integration.conftest import Bench

pytestmark = pytest.mark.integration

ROWS, MINUTE = 4_000, 60_000_000
JOB = """
import sys
import engine as hw
from engine import agg, windows
from engine.connectors.json_lines import JsonLinesSource
from engine.connectors.parquet_files import ParquetFilesSink
logs, output = sys.argv[1:3]
env = hw.Environment("logs", checkpoint_interval="1h")
lines = JsonLinesSource(logs + "/*.jsonl", schema={"host": str, "at": int})
rows = env.source(lines, uid="logs", watermarks=hw.monotonic("at"))
counts = rows.key_by("host").window(windows.tumbling("1h")).agg(n=agg.count(), uid="hourly")
counts.sink(ParquetFilesSink(output), uid="files")
env.execute()
"""


def lines(host: str) -> list[str]:
    return [json.dumps({"host": host, "at": n * MINUTE}) + "\n" for n in range(ROWS)]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for host in "abc":
        (folder / f"{host}.jsonl").write_text("".join(lines(host)))
    return folder


def program(bench: Bench, logs: Path, rate: int, **settings: str) -> Program:
    artifact = bench.client.upload("logs.py", JOB.encode())
    limit = {"headwater.read-limit": str(rate)}
    return Program(artifact, (str(logs), str(bench.output)), 2, limit | settings)


@pytest.fixture
def savepoint(bench: Bench, logs: Path) -> str:
    job = bench.client.run(RunRequest(program(bench, logs, 2_000)))
    wait_until(lambda: (bench.client.progress(job).event_time_us or 0) > 300 * MINUTE, "it reads")
    return bench.await_savepoint(job, bench.client.stop(job, StopRequest()))


def positions(savepoint: str) -> dict[str, int]:
    """How many lines were read of each host."""
    entry = load_manifest(savepoint).operator("logs")
    assert entry is not None
    read = {id_: split.position["line"] for id_, split in entry.splits.items()}  # type: ignore
    return {host: read[f"{host}.jsonl"] for host in "abc"}


def hours(rows: list[tuple[str, int]]) -> pl.DataFrame:
    """Rows of a host and a minute, counted by host and the hour in which they end."""
    minutes = pl.DataFrame(rows, schema={"host": pl.String, "minute": pl.Int64}, orient="row")
    hour = pl.col("minute") // 60 + 1
    counts = minutes.group_by("host", hour=hour).agg(n=pl.len().cast(pl.Int64))
    return counts.sort("host", "hour")


def written(output: Path) -> pl.DataFrame:
    found = pl.read_parquet(output / "**/*.parquet")
    hour = pl.col("window_end").dt.epoch("us") // (60 * MINUTE)
    return found.select("host", hour=hour, n="n").sort("host", "hour")


def test_the_missing_range_is_named_and_with_consent_the_rest_is_written_whatever_dies(
    bench: Bench, logs: Path, savepoint: str
) -> None:
    read = positions(savepoint)["b"]
    assert 0 < read < ROWS
    (logs / "b.jsonl").unlink()
    again = program(bench, logs, 4_000)
    report = bench.client.preflight(PreflightRequest(again, savepoint))
    gone = [(row.uid, row.allowed) for row in report.rows if row.outcome == "missing_input"]
    assert gone == [("logs", False)]
    with pytest.raises(Refused, match=rf"split 'b.jsonl', .*lines from {read + 1:,} on: no file"):
        bench.client.run(RunRequest(again, savepoint_path=savepoint))
    agreed = RunRequest(again, savepoint_path=savepoint, accept_missing_input=frozenset({"logs"}))
    job = bench.client.run(agreed)
    bench.await_status(job, JobStatus.RUNNING)
    (logs / "b.jsonl").write_text("".join(lines("b")))  # too late: it was agreed to be without
    bench.kill_worker(job)
    assert bench.await_end(job) is JobStatus.FINISHED
    rows = [(host, n) for host in "abc" for n in range(read if host == "b" else ROWS)]
    assert_frame_equal(written(bench.output), hours(rows))


def test_rows_read_again_count_twice_in_open_windows_and_are_late_for_closed_ones(
    bench: Bench, logs: Path, savepoint: str
) -> None:
    read, entry = positions(savepoint), load_manifest(savepoint).operator("hourly")
    assert entry is not None
    closed = entry.watermark // (60 * MINUTE)  # hours that have fired
    again = program(bench, logs, 20_000, **{"headwater.restore.positions": "logs=earliest"})
    job = bench.client.run(RunRequest(again, savepoint_path=savepoint))
    bench.await_status(job, JobStatus.RUNNING)
    bench.kill_worker(job)
    assert bench.await_end(job) is JobStatus.FINISHED
    twice = [(host, n) for host in "abc" for n in range(read[host]) if n // 60 >= closed]
    once = [(host, n) for host in "abc" for n in range(ROWS)]
    assert_frame_equal(written(bench.output), hours(once + twice))
