"""The embedded series store: cost of writing, size of a week of a fleet, speed of charts.

    python -m benchmarks.series [--days 7]

Writing is what a request costs: line protocol is parsed, and its points are kept, and later packed;
in processor time, of this process. The week is one of twenty jobs of four operators that are looked
at every second; the points of one of them are made whole, and of the others the one field that the
chart of the fleet shows; the size is told in proportion.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from controlplane.metrics.contract import DAY_MS, HOUR_MS, Aggregate, step_for
from controlplane.metrics.embedded import blocks
from controlplane.metrics.embedded.database import Columns
from controlplane.metrics.embedded.partials import Points
from controlplane.metrics.embedded.store import SeriesStore
from controlplane.metrics.line_protocol import Point, parse, tags_of

GOAL_RATE, GOAL_MS, GOAL_MIB = 20_000, 100, 1_024
JOBS, WHOLE = 20, 1
JOB_FIELDS = ("in", "out", "delay_ms", "event_ms", "speed", "busy", "bp", "pending")
OPERATORS, OPERATOR_FIELDS = 4, ("in", "out", "busy", "bp", "idle")
SENSORS, SECONDS = 1_000, 60
BEGIN_MS = 1_764_460_800_000


def writing(folder: Path) -> float:
    """Points per second of processor time: a thousand sensors, a minute of seconds, one field."""
    store = SeriesStore(folder / "written.db")
    values = np.random.default_rng(1).normal(20, 2, (SECONDS, SENSORS)).round(2)
    bodies = [
        "\n".join(
            f"sensors,sensor=s{sensor:04} value={value} {BEGIN_MS + second * 1_000}"
            for sensor, value in enumerate(row)
        )
        for second, row in enumerate(values)
    ]
    requests = ["\n".join(bodies[at : at + 5]) for at in range(0, SECONDS, 5)]
    begun = time.process_time()
    for text in requests:
        refused = store.write("outputs", parse(text, now_ns=0, precision="ms").points)
        assert not refused
    store.compact(BEGIN_MS)
    used = time.process_time() - begun
    store.close()
    return SENSORS * SECONDS / used


def packing(folder: Path) -> tuple[float, float]:
    """Points per second of processor time of a compaction, and the longest write meanwhile, in ms.

    Of twenty columns and an hour of seconds each, while another thread writes all the time.
    """
    store = SeriesStore(folder / "packed.db")
    for minute in range(0, 61, 6):
        rows = [
            Point("m", (("k", f"{k:02}"),), (("v", float(s % 977)),), (minute * 60 + s) * 10**9)
            for k in range(20)
            for s in range(360)
        ]
        store.write("outputs", rows)
    over, waits = threading.Event(), list[float]()

    def write() -> None:
        while not over.wait(0.01):
            begun = time.perf_counter()
            store.write("engine", rows[:100])
            waits.append(1_000 * (time.perf_counter() - begun))

    writer = threading.Thread(target=write)
    writer.start()
    begun = time.process_time()
    store.compact(0)
    used = time.process_time() - begun
    over.set()
    writer.join()
    store.close()
    return 20 * 3_600 / used, max(waits, default=0.0)


def week(folder: Path, days: int) -> SeriesStore:
    """A store as it is after some days of the fleet."""
    store = SeriesStore(folder / "series.db")
    chance = np.random.default_rng(7)
    for day in range(days):
        for hour in range(24):
            _hour(store, chance, day * 24 + hour)
        store.expire(BEGIN_MS + (day + 1) * DAY_MS)
    return store


def _hour(store: SeriesStore, chance: np.random.Generator, hour: int) -> None:
    start = (BEGIN_MS + hour * HOUR_MS) * 1_000_000
    times = start + np.arange(3_600) * 10**9 + chance.integers(0, 20, 3_600) * 1_000_000
    region = blocks.region_at(start, blocks.HOUR_NS)
    with store.database.writing() as db:
        known = Columns()
        for job in range(JOBS):
            for measurement, tags, field in _columns(job):
                point = Point(measurement, tags_of(tags.items()), ((field, 0.0),), start)
                known.type_of(db, "engine", measurement, field, "float")
                column, _ = known.column(db, "engine", point, field)
                blocks.put(db, column, region, Points(times, _values(field, times, chance)))


def _columns(job: int) -> list[tuple[str, dict[str, str], str]]:
    tags = {"job": f"job-{job}", "run": str(job), "purpose": "live"}
    if job >= WHOLE:
        return [("job", tags, "in")]
    of_job = [("job", tags, field) for field in JOB_FIELDS]
    return of_job + [
        ("operator", tags | {"vertex": f"v{vertex}"}, field)
        for vertex in range(OPERATORS)
        for field in OPERATOR_FIELDS
    ]


def _values(field: str, times: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Figures like those of a job that runs steadily, rounded as the collector rounds them."""
    match field:
        case "event_ms":
            return (times // 1_000_000 - 2_000).astype(np.float64)
        case "busy" | "bp" | "idle":
            return chance.normal(30, 5, len(times)).clip(0, 100).round()
        case "pending" | "delay_ms":
            return chance.normal(2_000, 300, len(times)).clip(0).round()
        case _:
            return chance.normal(1_000, 25, len(times)).round(1)


def charts(store: SeriesStore, days: int) -> list[tuple[str, float]]:
    """How long each kind of chart takes, in ms: the slowest of five."""
    stop = BEGIN_MS + days * DAY_MS

    def chart(measurement: str, field: str, span_ms: int, **where: str) -> Callable[[], int]:
        step = step_for(span_ms, 300)
        return lambda: sum(
            len(one.points)
            for one in store.query(
                "engine", measurement, field, where=where, start_ms=stop - span_ms, stop_ms=stop,
                step_ms=step, aggregate=Aggregate.MEAN,
            )
        )  # fmt: skip

    kinds = {
        "rate of a job, ten minutes": chart("job", "in", 600_000, job="job-0"),
        "rate of a job, a day": chart("job", "in", DAY_MS, job="job-0"),
        "rate of a job, all days": chart("job", "in", days * DAY_MS, job="job-0"),
        "load of its operators, all days": chart("operator", "busy", days * DAY_MS, job="job-0"),
        "rate of each of twenty jobs, a day": chart("job", "in", DAY_MS),
        "rate of each of twenty jobs, all days": chart("job", "in", days * DAY_MS),
    }
    return [(name, max(_timed(ask) for _ in range(5))) for name, ask in kinds.items()]


def _timed(ask: Callable[[], int]) -> float:
    begun = time.perf_counter()
    assert ask()
    return 1_000 * (time.perf_counter() - begun)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.series", description=__doc__.split("\n")[0])
    parser.add_argument("--days", type=int, default=7)
    days = parser.parse_args().days
    with tempfile.TemporaryDirectory(prefix="hw-series-") as name:
        folder = Path(name)
        rate = writing(folder)
        print(f"written: {rate / 2:,.0f} points/s on half a core (goal {GOAL_RATE:,})")
        packed, waited = packing(folder)
        print(f"packed:  {packed / 2:,.0f} points/s on half a core, with another writer's work")
        print(f"         the longest write meanwhile: {waited:.0f} ms")
        store = week(folder, days)
        store.close()
        share = (len(_columns(0)) * JOBS) / sum(len(_columns(job)) for job in range(JOBS))
        size = store.path.stat().st_size * share / 2**20
        print(f"{days} days of {JOBS} jobs: {size:,.0f} MiB (goal {GOAL_MIB:,} for a week)\n")
        for chart, took in charts(store, days):
            print(f"{chart:40}{took:>8.1f} ms (goal {GOAL_MS})")


if __name__ == "__main__":
    main()
