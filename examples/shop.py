"""Orders of a shop that meet other streams and a table: the four kinds of join, side by side.

    orders ── per customer ─┬─ window_join ─── views of the same hour ──▶ "hour": bought and viewed
                            ├─ interval_join ─ payments up to 30m later ▶ "paid", or not
           ── per currency ─┴─ temporal_join ─ the rate of that moment ─▶ lookup_join ─▶ "euros"
                                                                          with customers' names

The first three go by event time: what meets what is the same however fast the streams come. The
table of customers is read again every ten minutes of the clock, and whoever orders in between
meets the table as it was read.
"""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

import engine as hw
from engine import windows
from engine.connectors.frame import FrameSource
from engine.connectors.print import PrintSink

OPENING = datetime(2026, 1, 2, 9, tzinfo=UTC)


def table(columns: list[str], rows: list[tuple[object, ...]]) -> pl.DataFrame:
    """Rows that begin with a minute after the opening."""
    frame = pl.DataFrame(rows, schema=["minute", *columns], orient="row")
    return frame.select(pl.lit(OPENING).add(pl.duration(minutes="minute")).alias("at"), *columns)


ORDERS = table(
    ["order", "customer", "currency", "price"],
    [
        (5, 1, "ann", "USD", 100.0),
        (30, 2, "bob", "EUR", 40.0),
        (62, 3, "ann", "USD", 100.0),
        (60, 4, "eve", "GBP", 10.0),
        (130, 5, "bob", "USD", 50.0),
    ],
)
VIEWS = table(
    ["visitor", "page"],
    [(1, "ann", "/tea"), (2, "ann", "/cups"), (31, "bob", "/tea"), (61, "eve", "/tea")],
)
PAYMENTS = table(
    ["payer", "amount"],
    [(6, "ann", 100.0), (60, "bob", 40.0), (70, "eve", 10.0), (95, "ann", 100.0)],
)
RATES = table(
    ["currency", "rate"],
    [(0, "USD", 0.9), (0, "EUR", 1.0), (62, "USD", 0.8), (100, "GBP", 1.2)],
)


def customers() -> pl.DataFrame:
    """The table as it is now: a file or a database in a job that runs for longer."""
    return pl.DataFrame({"customer": ["ann", "bob"], "name": ["Ann Archer", "Bob Baker"]})


def main() -> None:
    """Describe the job."""
    env = hw.Environment("shop")
    times = hw.bounded_out_of_orderness("5m", column="at")

    def stream(name: str, frame: pl.DataFrame) -> hw.Stream:
        return env.source(FrameSource(frame), uid=name, watermarks=times)

    orders = stream("orders", ORDERS)
    views, payments = stream("views", VIEWS).drop("at"), stream("payments", PAYMENTS).drop("at")
    rates = stream("rates", RATES).drop("at")
    by_customer = orders.drop("at").key_by("customer")

    hour = by_customer.window_join(views.key_by("visitor"), windows.tumbling("1h"), uid="hour")
    hour.select("customer", "order", "page").sink(PrintSink("hour"), uid="print-hour")

    paid = by_customer.interval_join(
        payments.key_by("payer"), lower=0, upper="30m", how="left", uid="paid"
    )
    paid.select("order", "amount").sink(PrintSink("paid"), uid="print-paid")

    priced = orders.key_by("currency").temporal_join(
        rates.key_by("currency"), how="left", defaults={"rate": 1.0}, uid="priced"
    )
    euros = priced.select("order", "customer", euros=pl.col("price") * pl.col("rate"))
    named = euros.lookup_join(customers, on="customer", every="10m", how="left", uid="named")
    named.select("order", "name", "euros").sink(PrintSink("euros"), uid="print-euros")
    env.execute()


if __name__ == "__main__":
    main()
