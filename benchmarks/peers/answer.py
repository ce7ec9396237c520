"""What the script of a peer is told, and what it answers.

    python -m benchmarks.peers.scripts.NAME WORK ROWS FOLDER
    {"seconds": 0.51, "cpu_s": 0.49, "totals": [3450, 100000, 51090012.0, 812…]}       last line

Needs    NumPy only: the scripts of peers import it where Headwater is not installed.
Counts   seconds from the start of the peer's run until all its results are there. Events are made
         before; the peak of memory has them in it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.totals import Totals
from benchmarks.peers.work import WORKS, Work


@dataclass(frozen=True, slots=True)
class Order:
    """What to measure."""

    work: Work
    rows: int
    folder: Path
    """Empty, or with `events.jsonl` for work on JSON lines; goes away afterwards."""

    @property
    def lines(self) -> Path:
        return self.folder / "events.jsonl"


def order() -> Order:
    """Read the order from the command line."""
    work, rows, folder = sys.argv[1:]
    return Order(WORKS[work], int(rows), Path(folder))


def answer(run: Callable[[], None], output: Callable[[], Totals]) -> None:
    """Time the run, add up what it put out, and print both."""
    cpu, start = time.process_time(), time.perf_counter()
    run()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    say(seconds, cpu, output())


def say(seconds: float, cpu_s: float | None, found: Totals) -> None:
    """Print what was measured; `cpu_s` is None when other processes do the work."""
    print(json.dumps({"seconds": seconds, "cpu_s": cpu_s, "totals": found}), flush=True)
