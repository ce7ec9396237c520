"""`python job.py`: a job in a cluster of its own, from start to end, and what it leaves behind."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import psutil
import pytest

from engine.checkpoint.restoring.restore import load_manifest
from engine.testing.cluster import PATIENCE_S, WORKER, wait_until

ROOT = Path(__file__).parents[2]

JOB = """
import argparse

import engine as hw
from engine.connectors.generator import SensorGenerator
from engine.connectors.parquet_files import ParquetFilesSink
from engine import agg, windows

from beside import doubled

parser = argparse.ArgumentParser(description="Readings, doubled.")
parser.add_argument("--rows", type=int)
parser.add_argument("--poison", type=float)
args = parser.parse_args()


def double(row):
    if row["value"] == args.poison:
        raise ValueError("poison")
    return row | {"value": doubled(row["value"])}


env = hw.Environment("doubled", checkpoint_interval="100ms")
times = hw.bounded_out_of_orderness("500ms", column="time")
readings = env.source(SensorGenerator(50, rows=args.rows), uid="sensors", watermarks=times)
counts = (
    readings.map(double, uid="double")
    .key_by("sensor")
    .window(windows.tumbling("1s"))
    .agg(n=agg.count(), uid="counts")
)
counts.sink(ParquetFilesSink("counted"), uid="files")
env.execute()
print("after the job")
"""

PRINTING = """
import engine as hw
from engine.connectors.generator import SensorGenerator
from engine.connectors.print import PrintSink

env = hw.Environment("endless", checkpoint_interval="100ms")
env.source(SensorGenerator(50), uid="sensors").sink(PrintSink(), uid="rows")
env.execute()
"""


@dataclass
class Place:
    """A job file with a module beside it, a folder to work in, and one for temporary files."""

    job: Path
    work: Path
    temporary: Path

    def start(self, *args: str, stderr: int = subprocess.PIPE, **variables: str) -> Started:
        process = subprocess.Popen(
            [sys.executable, str(self.job), *args],
            cwd=self.work,
            env=self.environment(variables),
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        return Started(process, psutil.Process(process.pid))

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        own = {
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.temporary),
            "HEADWATER_HOME": str(self.work / "home"),
        }
        return {**os.environ, **own, **variables}

    def counted(self) -> int:
        """Rows in the windows of all committed files."""
        files = list((self.work / "counted").rglob("[!.]*.parquet"))
        return sum(pl.read_parquet(file)["n"].sum() for file in files)

    def left(self) -> list[Path]:
        return list(self.temporary.iterdir())


@dataclass
class Started:
    """A job file that runs."""

    process: subprocess.Popen[bytes]
    itself: psutil.Process

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out.decode(), (err or b"").decode()

    def processes(self) -> list[psutil.Process]:
        return self.itself.children(recursive=True)

    def workers(self) -> list[psutil.Process]:
        return [found for found in self.processes() if WORKER in " ".join(found.cmdline())]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / "jöbs of mine"
    folder.mkdir()
    (folder / "job.py").write_text(JOB)
    (folder / "beside.py").write_text("def doubled(value):\n    return 2 * value\n")
    work = tmp_path / "elsewhere"
    work.mkdir()
    with tempfile.TemporaryDirectory(prefix="hw") as temporary:
        yield Place(folder / "job.py", work, Path(temporary))


def gone(processes: list[psutil.Process]) -> bool:
    return not any(
        process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes
    )


@pytest.mark.integration
def test_a_bounded_job_ends_with_every_window_fired(place: Place) -> None:
    started = place.start("--rows", "120", HEADWATER_PARALLELISM="2")
    code, out, err = started.end()
    assert (code, out) == (0, "after the job\n")
    first, last = err.splitlines()
    assert re.fullmatch(
        r"headwater: job doubled runs at http://127\.0\.0\.1:\d+; Ctrl-C ends it", first
    )
    assert re.search(r"finished in [\d.]+ s: 360 rows in, 9 rows out, \d+ checkpoint", last)
    assert place.counted() == 360
    assert place.left() == []


@pytest.mark.integration
def test_a_failure_tells_its_root_cause_and_ends_with_code_1(place: Place) -> None:
    code, out, err = place.start("--rows", "120", "--poison", "0.0").end()
    assert (code, out) == (1, "")
    assert "job doubled failed: FunctionError: map 'double' raised ValueError: poison: row {" in err
    told = err.rpartition("in sensors → ")[2].splitlines()
    assert told[1] == "Traceback (most recent call last):"
    assert re.fullmatch(rf'  File "{place.job}", line \d+, in double', told[2])
    assert told[3:] == ['    raise ValueError("poison")', "ValueError: poison"]
    assert place.left() == []


@pytest.mark.integration
def test_ctrl_c_cancels_and_leaves_only_what_is_committed(place: Place) -> None:
    started = place.start()
    wait_until(lambda: place.counted() > 0, "a window is committed")
    processes = started.processes()
    started.process.send_signal(signal.SIGINT)
    code, out, err = started.end()
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "headwater: job doubled was cancelled"
    assert place.counted() % 50 == 0
    assert gone(processes)
    assert place.left() == []


@pytest.mark.integration
def test_a_job_whose_rows_nobody_reads_on_ends_quietly(place: Place) -> None:
    place.job.write_text(PRINTING)
    started = place.start()
    with started.process as process:
        process.stdout.readline()  # as `| head -1`
        processes = started.processes()
        process.stdout.close()
        err = process.stderr.read().decode()
    assert process.returncode == 141
    assert re.fullmatch(r"headwater: job endless runs at \S+; Ctrl-C ends it\n", err)
    assert gone(processes)
    assert place.left() == []


@pytest.mark.integration
def test_when_the_program_is_killed_nothing_of_it_remains(place: Place) -> None:
    started = place.start()
    wait_until(started.workers, "a worker runs")
    processes = started.processes()
    started.process.kill()
    started.process.communicate()
    wait_until(lambda: gone(processes), "every process is gone")
    wait_until(lambda: not place.left(), "the folders are gone")


@pytest.mark.integration
def test_a_person_sees_how_far_it_is_and_that_it_restarts(place: Place) -> None:
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    started = place.start(stderr=theirs)
    os.close(theirs)
    seen = b""

    def sees(pattern: bytes) -> bool:
        nonlocal seen
        with suppress(BlockingIOError):
            seen += os.read(ours, 4096)
        return re.search(pattern, seen) is not None

    day = rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    wait_until(lambda: sees(day + rb" \xc2\xb7 [\d,]+ rows in \xc2\xb7 "), "there is progress")
    started.workers()[0].kill()
    wait_until(lambda: sees(rb"job doubled restarts: worker process \d+ was killed"), "it restarts")
    started.process.terminate()
    wait_until(lambda: sees(rb"job doubled was ended"), "it says that it ends")
    assert started.end()[0] == 143
    os.close(ours)
    assert place.left() == []


@pytest.mark.integration
def test_a_savepoint_of_an_embedded_job_starts_another(place: Place) -> None:
    started = place.start()
    url = re.search(rb"http://\S+(?=;)", started.process.stderr.readline()).group().decode()
    cli = [sys.executable, "-m", "engine.cli"]
    environment = place.environment({})
    wait_until(lambda: place.counted() > 0, "a window is committed")
    stop = [*cli, "--url", url, "stop", "doubled"]
    subprocess.run(stop, env=environment, check=True, capture_output=True)
    code, _, err = started.end()
    assert code == 0
    (savepoint,) = (place.work / "home" / "savepoints").iterdir()
    assert f"job doubled was stopped with savepoint {savepoint}\n" in err
    (sensors,) = [op for op in load_manifest(str(savepoint)).operators if op.uid == "sensors"]
    rows = 50 + max(split.position["row"] for split in sensors.splits.values())
    run = [*cli, "run", "--embedded", "-s", str(savepoint), str(place.job), "--", f"--rows={rows}"]
    again = subprocess.run(
        run, cwd=place.work, env=environment, check=True, capture_output=True, timeout=PATIENCE_S
    )
    assert b"job doubled finished in " in again.stderr
    assert place.counted() == 3 * rows


def test_help_of_a_job_file_needs_no_cluster(place: Place) -> None:
    code, out, err = place.start("--help").end()
    assert (code, err) == (0, "")
    assert "Readings, doubled." in out
