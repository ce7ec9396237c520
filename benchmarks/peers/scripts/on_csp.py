"""csp: a graph of nodes in C++ that calls one Python node per event. Engine time must not go back,
so the time of an event is a value, and the windows are ours.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import csp
import numpy as np

from benchmarks.peers.answer import Order, answer, order
from benchmarks.peers.scripts.panes import Panes
from benchmarks.peers.totals import Totals, running, totals

START = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
found: list[Any] = []
panes = Panes()


@csp.node
def windowed(key: csp.ts[int], time: csp.ts[int], value: csp.ts[float]) -> csp.ts[object]:
    if csp.ticked(key):
        closed = panes.add(key, time, value)
        if closed:
            csp.output(closed)


@csp.node
def summed(key: csp.ts[int], time: csp.ts[int], value: csp.ts[float]) -> csp.ts[object]:
    with csp.state():
        s_sums = {}
    if csp.ticked(key):
        total = s_sums[key] = s_sums.get(key, 0.0) + value
        csp.output(((key, total),))


@csp.node
def collect(rows: csp.ts[object]):
    if csp.ticked(rows):
        found.extend(rows)


@csp.graph
def job(asked: object):
    key, time, value = asked.work.events(0, asked.rows)
    turn = np.datetime64(START, "ns") + np.arange(1, asked.rows + 1).astype("timedelta64[us]")
    columns = (
        csp.curve(int, (turn, key)),
        csp.curve(int, (turn, time)),
        csp.curve(float, (turn, value)),
    )
    if asked.work.name == "running":
        collect(summed(*columns))
    else:
        collect(windowed(*columns))


def output(asked: Order) -> Totals:
    if asked.work.name == "running":
        return running(*zip(*found, strict=True))
    return totals(found)


def main() -> None:
    asked = order()
    graph = csp.build_graph(job, asked)

    def run() -> None:
        csp.run(graph, starttime=START, endtime=timedelta(days=1), realtime=False)
        found.extend(panes.rest())

    answer(run, lambda: output(asked))


if __name__ == "__main__":
    main()
