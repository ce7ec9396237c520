"""Word count, the smallest job that counts: python examples/words.py

    lines ──words──▶ one row per word ──per word, an hour each──▶ how often

It runs in a cluster of its own, prints its counts and ends, because the text does. The counts of an
hour come when event time has passed it: at the end of input all do.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.frame import FrameSource
from engine.connectors.print import PrintSink

TEXT = """\
Not a step is lost,
and not a step is taken twice:
a stream that is stopped
goes on where it was."""

START = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Describe the job: a line every half hour."""
    lines = TEXT.splitlines()
    times = [START + timedelta(minutes=30 * number) for number in range(len(lines))]
    source = FrameSource(pl.DataFrame({"line": lines, "at": times}))

    env = hw.Environment("words")
    words = (
        env.source(source, uid="lines", watermarks=hw.monotonic("at"))
        .select(word=pl.col("line").str.to_lowercase().str.extract_all(r"\w+"))
        .explode("word")
    )
    counts = words.key_by("word").window(windows.tumbling("1h")).agg(n=agg.count(), uid="counts")
    counts.filter(pl.col("n") > 1).sink(PrintSink(), uid="print")
    env.execute()


if __name__ == "__main__":
    main()
