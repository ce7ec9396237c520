"""What `replay` measures by: the files of a run, what it came to, and how two of them differ.

Units    memory: bytes, resident, of all workers together; event time in whole windows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import polars as pl
import psutil

from benchmarks.replay_job import BEGAN
from engine.testing.cluster import LocalCluster

WINDOW = timedelta(minutes=10)
STEPS = 6
GROWN = 1.1
"""More than this from the middle to the end is growth; less is what allocators do."""


class Output:
    """The files that a run has committed so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: set[Path] = set()
        self._newest = BEGAN

    def files(self) -> Iterator[Path]:
        return self.folder.glob("[!.]*.parquet")

    def progress(self, days: int) -> float:
        """Share of the event time whose windows are committed; 1.0: all that the sources close."""
        for file in set(self.files()) - self._seen:
            self._seen.add(file)
            self._newest = max(self._newest, *pl.read_parquet(file)["window_end"].to_list())
        return (self._newest - BEGAN) / (timedelta(days=days) - WINDOW)

    def table(self) -> pl.DataFrame:
        """All rows, in an order that does not depend on the run."""
        tables = [pl.read_parquet(file) for file in self.files()]
        return pl.concat(tables).sort("window_end", "sensor").rechunk()


@dataclass(frozen=True, slots=True)
class Run:
    """What one run came to."""

    table: pl.DataFrame
    seconds: float
    start_s: float
    """Of these, until every subtask ran."""
    memory: tuple[int, ...]
    """The most bytes in each step of the run."""
    kills: int = 0

    @property
    def covered(self) -> timedelta:
        """Event time from the first window to the end."""
        ends = self.table["window_end"]
        return timedelta(microseconds=ends.to_physical()[-1] - ends.to_physical()[0]) + WINDOW

    @property
    def times_real(self) -> float:
        return self.covered.total_seconds() / self.seconds

    @property
    def flat(self) -> bool:
        """Whether the last steps took no more memory than those in the middle."""
        third = len(self.memory) // 3
        return max(self.memory[-third:]) <= GROWN * max(self.memory[third:-third])


def digest(table: pl.DataFrame) -> str:
    """SHA-256 of the bytes of a table."""
    content = BytesIO()
    table.write_ipc(content)
    return hashlib.sha256(content.getvalue()).hexdigest()


def memory(cluster: LocalCluster) -> int:
    """Bytes of all workers that have a job."""
    total = 0
    for worker in cluster.workers():
        with suppress(psutil.Error):  # it ended between the listing and now
            total += worker.memory_info().rss
    return total


def steps(weighed: Sequence[int]) -> tuple[int, ...]:
    """The most in each step of a run: a few numbers, however long it was."""
    places = [len(weighed) * step // STEPS for step in range(STEPS + 1)]
    return tuple(max(weighed[lo:hi], default=0) for lo, hi in pairwise(places))


def wrong(live: Run, replay: Run, readings: int) -> str | None:
    """How a replay differs from the live run, in a sentence; None when it does not."""
    ends, first = live.table["window_end"], replay.table["window_end"][0]
    before, expected = live.table.filter(ends < first), live.table.filter(ends >= first)
    if not replay.table.equals(expected):
        return f"its {replay.table.height:,} rows are not the {expected.height:,} live ones"
    if digest(replay.table) != digest(expected):
        return "its rows are equal, but not their bytes"
    counted = int(before["n"].sum()) + int(replay.table["n"].sum())
    if counted != readings:
        return f"{counted:,} of {readings:,} readings are counted: others were late, or came twice"
    return None
