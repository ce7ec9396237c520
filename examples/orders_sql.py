"""Orders sorted out in SQL: `map_batches` hands each batch to Polars as a table.

    orders ──SELECT … FROM orders WHERE …──▶ size and tax of each order, the cancelled ones left out

A statement sees one batch, so it must say what becomes of a row, and of no other: no GROUP BY, no
ORDER BY. `*` keeps the columns that the engine needs when rows are left out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl

import engine as hw
from engine.connectors.frame import FrameSource
from engine.connectors.print import PrintSink

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDERS = pl.DataFrame(
    {
        "amount": [12.0, 480.0, 75.0, 3.5],
        "country": ["FR", "DE", "DE", "FR"],
        "cancelled": [False, False, True, False],
        "at": [NOON + timedelta(minutes=n) for n in range(4)],
    }
)
STATEMENT = """
    SELECT *,
           CASE WHEN amount >= 100 THEN 'large' ELSE 'small' END AS size,
           ROUND(amount * CASE country WHEN 'DE' THEN 0.19 ELSE 0.2 END, 2) AS tax
    FROM orders
    WHERE NOT cancelled
"""


def sort_out(orders: pl.DataFrame) -> pl.LazyFrame:
    """Run the statement on a batch."""
    return pl.SQLContext(orders=orders).execute(STATEMENT)


def main() -> None:
    """Describe the job."""
    env = hw.Environment("orders-sql")
    orders = env.source(FrameSource(ORDERS), uid="orders", watermarks=hw.monotonic("at"))
    taxed = orders.map_batches(sort_out, uid="sql").drop("cancelled")
    taxed.sink(PrintSink(), uid="print")
    env.execute()


if __name__ == "__main__":
    main()
