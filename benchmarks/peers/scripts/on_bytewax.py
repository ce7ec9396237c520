"""Bytewax: its own windows by event time (`fold_window`), and `stateful_map`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
import orjson
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.operators import windowing
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

from benchmarks.peers.answer import Order, answer, order
from benchmarks.peers.totals import Totals, running, totals
from benchmarks.peers.work import BOUND, FAR, GAP, SIZE, SLIDE

BATCH = 1_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATER = datetime.fromtimestamp(FAR / 1_000, UTC)

Event = tuple[str, tuple[datetime, float]]


class Batches(DynamicSource, StatelessSourcePartition):
    def __init__(self, batches: Iterator[list[Any]]) -> None:
        self._batches = batches

    def next_batch(self) -> list[Any]:
        return next(self._batches)

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Batches:
        return self


class Collected(DynamicSink, StatelessSinkPartition):
    def __init__(self, found: list[Any]) -> None:
        self._found = found

    def write_batch(self, items: list[Any]) -> None:
        self._found.extend(items)

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Collected:
        return self


def batches(rows: Iterable[Any]) -> Iterator[list[Any]]:
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def events(asked: Order) -> list[Event]:
    keys, times, values = (column.tolist() for column in asked.work.events(0, asked.rows))
    due = (datetime.fromtimestamp(time / 1_000, UTC) for time in times)
    return list(zip(map(str, keys), zip(due, values, strict=True), strict=True))


def decoded(lines: list[bytes]) -> list[Event]:
    rows = map(orjson.loads, lines)
    return [
        (row["key"], (datetime.fromtimestamp(row["time"] / 1_000, UTC), row["value"]))
        for row in rows
    ]


def summed(total: float | None, event: tuple[datetime, float]) -> tuple[float, float]:
    total = (total or 0.0) + event[1]
    return total, total


def add(sums: list[Any], event: tuple[datetime, float]) -> list[Any]:
    sums[0] += 1
    sums[1] += event[1]
    sums[2] = min(sums[2], event[0])
    return sums


def merge(one: list[Any], other: list[Any]) -> list[Any]:
    return [one[0] + other[0], one[1] + other[1], min(one[2], other[2])]


def windower(name: str) -> Any:
    step, length = timedelta(milliseconds=SIZE), timedelta(milliseconds=SLIDE)
    if name == "sliding":
        return windowing.SlidingWindower(length=length, offset=step, align_to=EPOCH)
    if name == "session":
        return windowing.SessionWindower(gap=timedelta(milliseconds=GAP))
    return windowing.TumblingWindower(length=step, align_to=EPOCH)


def job(asked: Order, found: list[Any]) -> Dataflow:
    flow, name = Dataflow("job"), asked.work.name
    rows = asked.lines.open("rb") if name == "json" else events(asked)
    stream = op.input("events", flow, Batches(batches(rows)))
    if name == "json":
        stream = op.flat_map_batch("decoded", stream, decoded)
    if name == "running":
        out = op.stateful_map("summed", stream, summed)
    else:
        clock = windowing.EventClock(
            lambda event: event[0],
            timedelta(milliseconds=BOUND),
            now_getter=lambda: LATER,  # time that passes closes no window
            to_system_utc=lambda time: None,
        )

        def new() -> list[Any]:
            return [0, 0.0, LATER]

        ordered = name == "session"
        kind = windower(name)
        out = windowing.fold_window("sums", stream, clock, kind, new, add, merge, ordered).down
    op.output("collected", out, Collected(found))
    return flow


def output(asked: Order, found: list[Any]) -> Totals:
    if asked.work.name == "running":
        return running((int(key) for key, _ in found), (total for _, total in found))
    if asked.work.name == "session":
        return totals(
            (int(key), round(start.timestamp() * 1_000), count, total)
            for key, (_, (count, total, start)) in found
        )
    return totals(
        (int(key), window * SIZE, count, total) for key, (window, (count, total, _)) in found
    )


def main() -> None:
    asked, found = order(), []
    flow = job(asked, found)
    answer(lambda: cluster_main(flow, [], 0), lambda: output(asked, found))


if __name__ == "__main__":
    main()
