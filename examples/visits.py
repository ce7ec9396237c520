"""Visits of a web site, from the logs of its servers: python examples/visits.py

    east.jsonl ─┐
                ├─▶ per page, a minute each ──▶ how many, and how slow
    west.jsonl ─┘

Each file is a split with watermarks of its own: a server that writes little does not make the rows
of a busy one late, nor does the busy one run an hour ahead while the other is read. One line of
west.jsonl was cut by a crash; it is left out, and counted as `numRecordsInErrors`.
"""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

import engine as hw
from engine import agg, windows
from engine.connectors.json_lines import JsonLinesSource
from engine.connectors.print import PrintSink

FOLDERS = (Path(__file__).parent, Path(hw.__file__).parents[1] / "examples")
LOGS = Path("data", "visits", "*.jsonl")


def main(logs: Path) -> None:
    """Describe the job."""
    columns = {"time": datetime, "page": str, "ms": int}
    times = hw.bounded_out_of_orderness("10s", column="time").aligned("logs", max_drift="1h")

    env = hw.Environment("visits")
    visits = env.source(
        JsonLinesSource(logs, schema=columns, bad_lines="skip"), uid="logs", watermarks=times
    )
    minutes = (
        visits.key_by("page")
        .window(windows.tumbling("1m"))
        .agg(visits=agg.count(), slowest_ms=agg.max("ms"), uid="minutes")
    )
    minutes.sink(PrintSink(), uid="print")
    env.execute()


def arguments() -> argparse.Namespace:
    """Parse the arguments of the job."""
    found = [folder / LOGS for folder in FOLDERS if any(folder.glob(str(LOGS)))]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--logs", type=Path, default=found[0] if found else LOGS)
    return parser.parse_args()


if __name__ == "__main__":
    main(arguments().logs)
