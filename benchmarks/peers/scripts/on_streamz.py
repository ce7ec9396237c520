"""streamz: a pipeline of callbacks. It has no event time and no keyed state, so windows are ours:
what is measured is its dispatch of single events, and a plain dict.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson
from streamz import Stream

from benchmarks.peers.answer import Order, answer, order
from benchmarks.peers.scripts.panes import Panes
from benchmarks.peers.totals import Totals, running, totals

Event = tuple[int, int, float]
Sums = dict[int, float]


def windowed(panes: Panes, event: Event) -> tuple[Panes, list[tuple[int, int, int, float]]]:
    return panes, panes.add(*event)


def summed(sums: Sums, event: Event) -> tuple[Sums, tuple[tuple[int, float]]]:
    key, _, value = event
    total = sums[key] = sums.get(key, 0.0) + value
    return sums, ((key, total),)


def decoded(line: bytes) -> Event:
    row = orjson.loads(line)
    return int(row["key"]), row["time"], row["value"]


def events(asked: Order) -> Iterable[Event]:
    columns = asked.work.events(0, asked.rows)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def main() -> None:
    asked = order()
    panes, found = Panes(), []
    head = stream = Stream()
    if asked.work.name == "json":
        stream = stream.map(decoded)
    step, state = (summed, {}) if asked.work.name == "running" else (windowed, panes)
    stream.accumulate(step, start=state, returns_state=True).sink(found.extend)
    rows = asked.lines.open("rb") if asked.work.name == "json" else events(asked)

    def run() -> None:
        for row in rows:
            head.emit(row)
        found.extend(panes.rest())

    def output() -> Totals:
        return running(*zip(*found, strict=True)) if step is summed else totals(found)

    answer(run, output)


if __name__ == "__main__":
    main()
