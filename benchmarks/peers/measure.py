"""One run of a peer or of Headwater: started, watched, checked, and ended with all it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import psutil

from benchmarks.cluster import run
from benchmarks.peers.catalog import ROOT, Peer, PeerError, python_of
from benchmarks.peers.table import Score, wrong
from benchmarks.peers.totals import Totals, expected, of_columns
from benchmarks.peers.work import BEGAN, Work, write_lines

TIMEOUT_S = 120.0
SAMPLE_S = 0.05
BATCH = 65_536
OURS = "headwater"


def measured_peer(peer: Peer, work: Work, rows: int) -> Score:
    """Run a peer's script; a failure becomes a sentence of the score."""
    who = f"{peer.name} {peer.version}"
    try:
        python = python_of(peer)
        with _folder(work, rows) as folder:
            said, peak_mib = _watched(peer, python, work, rows, folder)
    except PeerError as error:
        return Score(who, work.name, rows, failure=str(error))
    found = Totals(*said["totals"])
    failure = wrong(found, expected(work, rows))
    return Score(who, work.name, rows, said["seconds"], said["cpu_s"], peak_mib, failure)


def measured_ours(work: Work, rows: int, version: str) -> Score:
    """Run the job on a cluster of its own, with a checkpoint each second, on one worker."""
    who, failures = f"{OURS} {version}", []
    job = Path(__file__).with_name("headwater_job.py")

    def check(output: Path) -> str:
        failures.append(wrong(_totals(output, work.name), expected(work, rows)))
        return failures[0]

    try:
        with _folder(work, rows) as folder:
            arguments: tuple[str, ...] = ("--work", work.name, "--rows", str(rows))
            if work.name == "json":
                arguments = (*arguments, "--lines", str(folder / "events.jsonl"))
            took = run(job, arguments, parallelism=1, max_rows=BATCH, check=check)
    except SystemExit as error:
        return Score(who, work.name, rows, failure=str(error))
    return Score(who, work.name, rows, took.seconds, took.cpu_s, took.peak_mib, failures[0])


@contextmanager
def _folder(work: Work, rows: int) -> Iterator[Path]:
    # A Spark that was just killed may still write.
    with tempfile.TemporaryDirectory(prefix="hw-peers-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if work.name == "json":
            write_lines(work, rows, folder / "events.jsonl")
        yield folder


def _totals(output: Path, name: str) -> Totals:
    results = pl.concat([pl.read_parquet(file) for file in output.glob("[!.]*.parquet")])
    key = results["key"].cast(pl.Int64).to_numpy()
    if name == "running":
        started = pl.repeat(BEGAN, results.height, dtype=pl.Int64, eager=True)
        counts = pl.ones(results.height, dtype=pl.Int64, eager=True)
        return of_columns(key, started.to_numpy(), counts.to_numpy(), results["total"].to_numpy())
    start = results["window_start"].dt.epoch("ms").to_numpy()
    count = results["n"].cast(pl.Int64).to_numpy()
    return of_columns(key, start, count, results["sum"].to_numpy())


def _watched(
    peer: Peer, python: Path, work: Work, rows: int, folder: Path
) -> tuple[dict[str, Any], float]:
    """What the script answered, and the peak of memory of all its processes, in MiB."""
    command = [str(python), "-m", peer.module, work.name, str(rows), str(folder)]
    log = folder / "log"
    with log.open("w+") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        peak = 0
        try:
            give_up = time.monotonic() + TIMEOUT_S
            while process.poll() is None:
                if time.monotonic() > give_up:
                    msg = f"{peer.name} did not end in {TIMEOUT_S:.0f} s; pass a smaller --scale"
                    raise PeerError(msg)
                peak = max(peak, sum(map(_rss, _family(process.pid))))
                time.sleep(SAMPLE_S)
        finally:
            _end(process)
        said, _ = process.communicate()
    if process.returncode:
        reasons = log.read_text().strip().splitlines() or [f"exit code {process.returncode}"]
        msg = f"{peer.name} failed: {reasons[-1].strip()[:200]}"
        raise PeerError(msg)
    return json.loads(said.splitlines()[-1]), peak / 2**20


def _family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:  # it ended just now
        return []


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _end(process: subprocess.Popen[str]) -> None:
    """Kill what is left of the script's process group, which it leads."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # all ended by themselves
        return
    except PermissionError:  # macOS, when only the dead are left
        if sys.platform != "darwin":
            raise
