"""What is sold of each item per hour: lists taken apart, rows set aside, work dealt out.

    orders ──split──▶ "foreign": orders in another currency, printed as they come
       └─ rebalance ─▶ one row per item of an order ──per item, an hour each──▶ pieces, turnover

The orders are read in one place; from `rebalance()` on, two subtasks share the work.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.frame import FrameSource
from engine.connectors.print import PrintSink

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDERS = pl.DataFrame(
    [
        {"order": 1, "minute": 5, "currency": "EUR", "items": ["tea", "cup"], "prices": [4, 9]},
        {"order": 2, "minute": 17, "currency": "USD", "items": ["tea"], "prices": [5]},
        {"order": 3, "minute": 31, "currency": "EUR", "items": ["tea", "tea"], "prices": [4, 4]},
        {"order": 4, "minute": 65, "currency": "EUR", "items": [], "prices": []},
        {"order": 5, "minute": 80, "currency": "EUR", "items": ["cup"], "prices": [8]},
    ]
).select(pl.exclude("minute"), at=NOON + pl.duration(minutes="minute"))


def main() -> None:
    """Describe the job."""
    env = hw.Environment("orders")
    times = hw.bounded_out_of_orderness(timedelta(minutes=1), column="at")
    orders = env.source(FrameSource(ORDERS), uid="orders", watermarks=times, parallelism=1)

    ours = orders.split({"foreign": pl.col("currency") != "EUR"}, uid="currencies", parallelism=1)
    ours.side_output("foreign").sink(PrintSink("foreign"), uid="print-foreign")

    sold = (
        ours.rebalance()
        .explode("items", "prices", uid="items", parallelism=2)
        .rename({"items": "item", "prices": "price"}, parallelism=2)
        .key_by("item")
        .window(windows.tumbling("1h"))
        .agg(pieces=agg.count(), turnover=agg.sum("price"), uid="sold")
    )
    sold.drop("window_end").sink(PrintSink("sold"), uid="print-sold")
    env.execute()


if __name__ == "__main__":
    main()
