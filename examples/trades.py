"""Trades of two shares through four kinds of window: when they tell, and what they keep.

    trades ── per share ─┬─ every three trades ──────────── reduce ──▶ "lots": the dearest of them
                         ├─ the last three, at each trade ─ agg ─────▶ "average"
                         ├─ all so far, at each leap ────── agg ─────▶ "leaps": of 5 or more
                         └─ five minutes, whole ─────────── apply ───▶ "falls": the deepest one

Trades come out of order, and one comes too late for its five minutes. In whatever order they come,
triggers see them in order of event time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl

import engine as hw
from engine import agg, evictors, triggers, windows
from engine.connectors.frame import FrameSource
from engine.connectors.print import PrintSink
from engine.functions import Row
from engine.triggers import TriggerResult

OPENING = datetime(2026, 1, 2, 9, tzinfo=UTC)
TRADES = pl.DataFrame(
    [
        ("ACME", 0, 100.0),
        ("ACME", 40, 104.0),
        ("ACME", 20, 98.0),
        ("ZINC", 60, 20.0),
        ("ACME", 150, 110.0),
        ("ZINC", 200, 19.0),
        ("ACME", 310, 101.0),
        ("ZINC", 320, 21.0),
        ("ACME", 330, 103.0),
        ("ACME", 410, 109.0),
        ("ACME", 290, 100.0),
    ],
    schema=["share", "second", "price"],
    orient="row",
).select("share", "price", at=OPENING + pl.duration(seconds="second"))


class Leap(triggers.Trigger):
    """Fires when a price is `by` or more away from the one that it fired at last."""

    last = hw.ValueState(float)

    def __init__(self, by: float) -> None:
        self.by = by

    def on_element(self, row: Row, ctx: triggers.TriggerContext) -> TriggerResult:
        last, price = self.last.get(), row["price"]
        if last is not None and abs(price - last) < self.by:
            return TriggerResult.CONTINUE
        self.last.set(price)
        return TriggerResult.CONTINUE if last is None else TriggerResult.FIRE


def dearest(one: Row, other: Row) -> Row:
    """The trade with the higher price; of two, the first."""
    return other if other["price"] > one["price"] else one


def fall(trades: pl.DataFrame, ctx: hw.WindowContext) -> pl.DataFrame:
    """How deep the price fell below the highest before: no sum of parts, it needs all trades."""
    ordered = trades.sort("at")
    deepest = (ordered["price"].cum_max() - ordered["price"]).max()
    return pl.DataFrame({"trades": [trades.height], "fall": [deepest]})


def main() -> None:
    """Describe the job."""
    env = hw.Environment("trades")
    times = hw.bounded_out_of_orderness(timedelta(seconds=30), column="at")
    trades = env.source(FrameSource(TRADES), uid="trades", watermarks=times).key_by("share")
    always = trades.window(windows.global_())

    lots = trades.count_window(3).reduce(dearest, uid="lots")
    lots.sink(PrintSink("lots"), uid="print-lots")

    three = always.trigger(triggers.count(1)).evictor(evictors.count(3))  # count_window(3, 1)
    average = three.agg(average=agg.mean("price"), uid="average")
    average.sink(PrintSink("average"), uid="print-average")

    leaps = always.trigger(Leap(5)).agg(price=agg.last("price"), trades=agg.count(), uid="leaps")
    leaps.sink(PrintSink("leaps"), uid="print-leaps")

    falls = trades.window(windows.tumbling("5m")).apply(
        fall, schema={"trades": int, "fall": float}, uid="falls"
    )
    falls.drop("window_end").sink(PrintSink("falls"), uid="print-falls")
    falls.side_output("late").sink(PrintSink("late"), uid="print-late")
    env.execute()


if __name__ == "__main__":
    main()
