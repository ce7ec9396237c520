"""What snapshots of a large state on RocksDB cost: seconds, a stop of the flow, bytes and memory.

    fill --> checkpoint --> change 1 % --> checkpoint --> kill -9 --> restored from it
         --> savepoint --> change 1 % --> savepoint --> difference of the two

Counts   a checkpoint from the request to its completion; a restore from the death of the worker
         until all of the job runs again. Memory is the largest resident set of the worker, with all
         that it has loaded, while a step lasts.
Needs    nothing else that writes to the disk: every file is forced onto it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.cluster import TIMEOUT_S, Usage
from benchmarks.large_state import KEEPER, STATE, keys_of, values_of
from engine.checkpoint.inspection.difference import difference
from engine.checkpoint.inspection.reading import Snapshot, open_snapshot
from engine.rest.answers.checkpoints import OperationStatus
from engine.rest.client import EngineClient
from engine.rest.model.requests import Program, RunRequest, SavepointRequest
from engine.state.contract import VALUE
from engine.testing.cluster import LocalCluster, wait_until

NAME = "snapshots"
KEYS = 10_000_000
CHANGED = 0.01
CHECKED = 1_000
"""So many keys are looked up."""
JOB = Path(__file__).with_name("large_state.py")
PATIENCE_S = 3_600.0
SETTINGS = {"execution.checkpointing.timeout": "10min"}
GOALS = "goals: at most 1,024 MiB of memory, and 20 ms in which the flow stands still"


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the table."""

    name: str
    seconds: float
    cpu_s: float
    """Processor time of the worker: hardly changed by what else runs."""
    goal_s: float | None = None
    stopped_ms: int | None = None
    """How long the flow waited."""
    mib: float | None = None
    """What was written."""
    peak_mib: float | None = None
    """Memory of the worker."""

    def __str__(self) -> str:
        goal = "-" if self.goal_s is None else f"{self.goal_s:g}"
        stopped = "-" if self.stopped_ms is None else str(self.stopped_ms)
        written = "-" if self.mib is None else f"{self.mib:.1f}"
        peak = "-" if self.peak_mib is None else f"{self.peak_mib:.0f}"
        return (
            f"{self.name:34}{self.seconds:>9.2f}{goal:>7}{self.cpu_s:>8.2f}{stopped:>11}"
            f"{written:>10}{peak:>10}"
        )


def heading() -> str:
    """The names of the columns."""
    return (
        f"state of many keys on RocksDB; {GOALS}\n\n"
        f"{'':34}{'seconds':>9}{'goal':>7}{'cpu s':>8}{'stopped ms':>11}{'MiB':>10}{'peak MiB':>10}"
    )


def measured(scale: float = 1.0) -> Iterator[Step]:
    """Run the job through all steps. Exits when a snapshot does not hold what it should."""
    keys = int(KEYS * scale)
    with tempfile.TemporaryDirectory(prefix="hw-bench-") as folder:
        cluster = LocalCluster(Path(folder, "home"), task_managers=1, slots=1)
        with cluster, EngineClient(cluster.url, timeout=TIMEOUT_S) as client:
            yield from _Measuring(cluster, client, Path(folder), keys).steps()


class _Measuring:
    """One run of the job, step by step."""

    def __init__(
        self, cluster: LocalCluster, client: EngineClient, folder: Path, keys: int
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._folder = folder
        self._gate = folder / "gate"
        self._keys = keys
        self._changed = int(keys * CHANGED)
        self._rows = 0
        self._job = ""
        self._savepoints: list[tuple[Snapshot, int]] = []
        """With how many rows had been let through."""

    def steps(self) -> Iterator[Step]:
        """Every step once it is done."""
        yield self._timed(f"fill {self._keys:,} keys", self._fill)
        yield self._timed("first checkpoint", self._checkpoint, goal_s=30)
        self._let_through(self._changed)
        yield self._timed("checkpoint after 1 %", self._checkpoint, goal_s=3)
        yield self._timed("restore after kill -9", self._killed, goal_s=30)
        yield self._timed("savepoint", self._savepoint)
        self._let_through(self._changed)
        yield self._timed("savepoint after 1 %", self._savepoint)
        yield self._timed("difference of the two", self._compared, goal_s=20)
        self._check_values()

    def _timed(self, name: str, do: Callable[[], int | None], goal_s: float | None = None) -> Step:
        """Do a step. What it gives is the id of the snapshot that it took, if it took one."""
        usage = Usage(self._cluster)
        with usage.sampled():
            began = time.perf_counter()
            taken = do()
            seconds = time.perf_counter() - began
        cpu_s, peak_mib = usage.cpu_s(1), usage.largest_bytes / 2**20
        if taken is None:
            return Step(name, seconds, cpu_s, goal_s, peak_mib=peak_mib)
        entry = self._client.checkpoint(self._job, taken)
        parts = [
            part
            for vertex in entry.vertices
            for part in self._client.checkpoint_subtasks(self._job, taken, vertex)
        ]
        return Step(
            name,
            seconds,
            cpu_s,
            goal_s,
            stopped_ms=max(part.sync_ms for part in parts),
            mib=entry.total.checkpointed_bytes / 2**20,
            peak_mib=peak_mib,
        )

    def _fill(self) -> None:
        self._open_gate()
        artifact = self._client.upload(JOB.name, JOB.read_bytes())
        output = self._folder / "output"
        arguments = ("--keys", str(self._keys), "--gate", str(self._gate), "--output", str(output))
        self._job = self._client.run(RunRequest(Program(artifact, arguments, settings=SETTINGS)))
        self._let_through(self._keys)

    def _let_through(self, rows: int) -> None:
        """Open the gate for more rows, and wait until they are in the state."""
        before = self._processed()
        self._rows += rows
        self._open_gate()
        wait_until(
            lambda: self._processed() >= before + rows, f"{rows:,} rows are processed", PATIENCE_S
        )

    def _open_gate(self) -> None:
        written = self._gate.with_suffix(".new")
        written.write_text(str(self._rows))
        written.replace(self._gate)

    def _processed(self) -> int:
        """Rows that this attempt has put into the state."""
        *_, last = self._client.job(self._job).vertices
        return last.counters.read_records

    def _checkpoint(self) -> int:
        trigger = self._client.trigger_checkpoint(self._job)
        return self._taken(lambda: self._client.checkpoint_status(self._job, trigger))[0]

    def _savepoint(self) -> int:
        request = SavepointRequest(str(self._folder / "savepoints"))
        trigger = self._client.trigger_savepoint(self._job, request)
        taken, path = self._taken(lambda: self._client.savepoint_status(self._job, trigger))
        self._savepoints.append((open_snapshot(path), self._rows))
        return taken

    def _taken(self, ask: Callable[[], OperationStatus]) -> tuple[int, str]:
        """Wait for a snapshot: its id, and where it lies."""
        wait_until(lambda: ask().done, "a snapshot is complete", PATIENCE_S)
        status = ask()
        newest = self._client.checkpoints(self._job).history[0]
        if status.failure is not None or newest.external_path is None:
            sys.exit(f"no snapshot: {status.failure}")
        return newest.id, newest.external_path

    def _killed(self) -> None:
        restored = self._client.checkpoints(self._job).counts.restored
        self._cluster.kill_worker()
        wait_until(lambda: self._restored() > restored, "the job runs again", PATIENCE_S)

    def _restored(self) -> int:
        """How many attempts have begun at a snapshot, and run."""
        found = self._client.checkpoints(self._job).counts.restored
        return found if self._client.job(self._job).all_running else 0

    def _compared(self) -> None:
        left, right = (snapshot for snapshot, _ in self._savepoints)
        [found] = [state for state in difference(left, right).states if state.uid == KEEPER]
        wanted = self._keys - self._changed, self._changed, 0, 0
        if (found.equal, found.changed, found.only_left, found.only_right) != wanted:
            sys.exit(f"the savepoints hold something else: {found}")

    def _check_values(self) -> None:
        """Some keys have what the last row of each has set."""
        key = np.linspace(0, self._keys - 1, CHECKED).astype(np.uint64)
        keys = np.uint64(self._keys)
        for snapshot, rows in self._savepoints:
            last = key + keys * ((np.uint64(rows - 1) - key) // keys)
            wanted = pl.LazyFrame({"key": keys_of(key), VALUE: values_of(last)})
            stored = snapshot.scan(snapshot.state(KEEPER, STATE))
            right = snapshot.collect(stored.join(wanted, on=["key", VALUE], how="semi"))
            if right.height != CHECKED:
                sys.exit(f"only {right.height} of {CHECKED} keys have the right value")
