"""How many came, how often each came: state that is larger than its memory, and a sketch.

    visits ──all, an hour each──▶ visits, roughly how many different visitors
       └─ per visitor, an hour each ─▶ visits ──those that came most─▶ printed

A window holds a count for each of --visitors people. What 2 MB of memory cannot hold of them lives
on disk, and the window fires part by part. `n_unique(exact=False)` needs no list of people at all.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.frame import FrameSource
from engine.connectors.print import PrintSink

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def visits(visitors: int) -> pl.DataFrame:
    """Everybody comes once, in no order, and every thousandth person ten times more."""
    number = pl.int_range(visitors)
    once = pl.select(visitor=number * 7_919 % visitors)
    regulars = once.filter(pl.col("visitor") % 1_000 == 0)
    return pl.concat([once, *[regulars] * 10]).select(
        pl.format("visitor {}", "visitor").alias("visitor"),
        (NOON + pl.duration(milliseconds=pl.int_range(pl.len()))).alias("at"),
        shop=pl.lit("all"),
    )


def main(args: argparse.Namespace) -> None:
    """Describe the job."""
    env = hw.Environment("visitors", state_backend="rocksdb", state_memory="2mb")
    times = hw.bounded_out_of_orderness(0, column="at")
    came = env.source(FrameSource(visits(args.visitors)), uid="visits", watermarks=times)

    totals = (
        came.key_by("shop")
        .window(windows.tumbling("1h"))
        .agg(visits=agg.count(), visitors=agg.n_unique("visitor", exact=False), uid="totals")
    )
    totals.select("visits", "visitors").sink(PrintSink("totals"), uid="print-totals")

    often = (
        came.key_by("visitor")
        .window(windows.tumbling("1h"))
        .agg(visits=agg.count(), first=agg.min("at"), uid="often")
        .filter(pl.col("visits") > 10)
    )
    often.select("visitor", "visits").sink(PrintSink("often"), uid="print-often")
    env.execute()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--visitors", type=int, default=100_000)
    main(parser.parse_args())
