"""Orders priced by a list that changes while they come: a stream that is broadcast to all subtasks.

    prices ──broadcast──▶ Priced ◀──per user── orders        priced orders, and what a user spent
    spent per user, forgotten after --timeout without an order ──▶ one row when a user is forgotten

Each order has the price that its item had at the time of the order, whichever stream was faster.
State may live in RocksDB: headwater run -D state.backend=rocksdb prices.py
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import polars as pl

import engine as hw
from engine.connectors.generator import SensorGenerator
from engine.connectors.parquet_files import ParquetFilesSink
from engine.functions import Row

HOME = Path(os.environ.get("HEADWATER_HOME", ".headwater"))
ITEMS = 7


class Priced(hw.KeyedBroadcastProcessFunction):
    """Puts the price of the time to each order."""

    prices = hw.BroadcastState(int, int)
    orders = hw.MapState(int, int)

    def process(self, row: Row, ctx: hw.FunctionContext) -> Iterator[Row]:
        item = row["item"]
        nth = self.orders.get(item, 0) + 1
        self.orders.put(item, nth)
        yield row | {"price": self.prices.get(item, 0), "nth": nth}

    def process_broadcast(self, row: Row, ctx: hw.FunctionContext) -> None:
        self.prices.put(row["item"], row["price"])


def spend(spent: int, row: Row) -> tuple[int, None]:
    """Add an order to what its user has spent."""
    return spent + row["price"], None


def forget(spent: int, key: tuple[str]) -> Row:
    """Say what a user had spent who does not come any more."""
    return {"user": key[0], "spent": spent}


def main(args: argparse.Namespace) -> None:
    """Describe the job."""
    env = hw.Environment("prices")
    times = hw.bounded_out_of_orderness("500ms", column="time")
    number = (pl.col("value").abs() * 1_000).cast(pl.Int64)

    def numbers(uid: str, rate: int, rows: int | None) -> hw.Stream:
        generator = SensorGenerator(rate, rows=rows, anchor=args.anchor)
        return env.source(generator, uid=uid, watermarks=times)

    orders = numbers("orders", args.rate, args.rows).select(
        user=pl.col("sensor"), item=number % ITEMS
    )
    # One list of prices: of two prices of one item and time none would be the later one.
    prices = (
        numbers("prices", 1, args.rows and args.rows // args.rate)
        .filter(pl.col("sensor") == "temperature")
        .select(item=number % ITEMS, price=number)
    )
    priced = (
        orders.key_by("user")
        .connect(prices.broadcast())
        .process(
            Priced(), schema={"user": str, "item": int, "price": int, "nth": int}, uid="priced"
        )
    )
    priced.sink(ParquetFilesSink(args.output / "orders"), uid="orders-files")
    spent = priced.key_by("user").map_with_state(
        spend,
        initial_state=0,
        state_type=int,
        timeout=args.timeout,
        on_timeout=forget,
        schema={"user": str, "spent": int},
        uid="spent",
    )
    spent.sink(ParquetFilesSink(args.output / "spent"), uid="spent-files")
    env.execute()


def arguments() -> argparse.Namespace:
    """Parse the arguments of the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rate", type=int, default=50, help="orders a second of each user")
    parser.add_argument("--rows", type=int, help="end after so many orders of each user")
    parser.add_argument("--timeout", default="30m", help="forget users after so long a silence")
    parser.add_argument("--output", type=Path, default=HOME / "output" / "prices")
    parser.add_argument("--anchor", help="when the first row is due", type=datetime.fromisoformat)
    return parser.parse_args()


if __name__ == "__main__":
    main(arguments())
