"""Series as plots show them: what a job writes, and how it ran.

Units    points are (epoch ms, value); event time for outputs, wall clock for rates.
Needs    outputs are found by name: a job writes the measurement that is called as itself, or
         measurements whose names begin with its own and `_`, `-` or `.`; a replay writes beside
         them, under `<measurement>@<replay>`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controlplane.jobs.models import Job
from controlplane.metrics.contract import Aggregate, Series, SeriesSource, step_for
from controlplane.metrics.store import ENGINE, OUTPUTS, series_store

NEWEST = 400
"""Points of one line: more than a plot has pixels to tell apart."""
WINDOWS = 90
HOUR_MS = 3_600_000
DASHED = (5, 4)
LINES = 6
"""Lines in one plot that can be told apart."""
PREFERRED = ("mean", "value", "sum", "total", "avg")
"""Fields whose names begin so are shown first."""
HISTORY = 300
"""Points of a line over a stretch of time at most."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plot."""

    name: str
    points: list[tuple[float, float]]
    hue: int
    """Which colour: the same things have the same one."""
    dash: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that can be plotted."""

    value: str
    """`measurement|field|tag=value`."""
    label: str


@dataclass(frozen=True, slots=True)
class _What:
    measurement: str
    field: str
    where: Mapping[str, str]


def output_choices(job: Job) -> tuple[Choice, ...]:
    """What a job's outputs can show, the most telling first."""
    store = series_store()
    found: list[Choice] = []
    for measurement in measurements_of(store, job.name):
        split, kept = _tags(store, measurement)
        fields = _fields(store, measurement)
        found += [
            _choice(job, measurement, field, split, tag, several=len(fields) > 1)
            for field in fields
            for tag in kept or ("",)
        ]
    return tuple(found)


def measurements_of(store: SeriesSource, name: str) -> list[str]:
    """Measurements that the live job writes."""
    return [
        one
        for one in store.measurements(OUTPUTS)
        if "@" not in one and (one == name or one.startswith(tuple(name + dot for dot in "_-.")))
    ]


def _choice(
    job: Job, measurement: str, field: str, split: str, tag: str, *, several: bool
) -> Choice:
    short = measurement.removeprefix(job.name).strip("_-.") or ("" if several else field)
    words = [short, field if several else "", tag]
    label = ", ".join(word.replace("_", " ") for word in words if word)
    return Choice(f"{measurement}|{field}|{f'{split}={tag}' if tag else ''}", label)


def _fields(store: SeriesSource, measurement: str) -> list[str]:
    """Numeric fields; means and values first, then fractions, then whole numbers."""
    types = store.fields(OUTPUTS, measurement)

    def order(name: str) -> tuple[bool, bool, str]:
        return not name.startswith(PREFERRED), types[name] != "float", name

    return sorted((name for name, kind in types.items() if kind in {"float", "integer"}), key=order)


def _tags(store: SeriesSource, measurement: str) -> tuple[str, tuple[str, ...]]:
    """With two tags or more: the one with the fewest values is chosen from, not drawn."""
    values: dict[str, set[str]] = {}
    for tags in store.tag_sets(OUTPUTS, measurement):
        for key, value in tags.items():
            values.setdefault(key, set()).add(value)
    if len(values) < 2:
        return "", ()
    split = min(values, key=lambda key: (len(values[key]), key))
    return split, tuple(sorted(values[split]))


def output_lines(choices: Sequence[Choice], choice: str, replay: str = "") -> list[Line]:
    """The chosen one of a job's outputs; with a replay, of both, over what that wrote."""
    store = series_store()
    what = _parsed(choice, choices)
    if what is None:
        return []
    if not replay:
        live = _busiest(_read(store, what.measurement, what), LINES)
        return [Line(_name(one, what), _recent(_numbers(one)), hue) for hue, one in enumerate(live)]
    beside = _busiest(_read(store, f"{what.measurement}@{replay}", what), LINES // 2)
    hues = {_name(one, what): hue for hue, one in enumerate(beside)}
    shadow = [
        Line(f"{name} {replay}", _recent(_numbers(one)), hues[name], DASHED)
        for one in beside
        if (name := _name(one, what))
    ]
    times = [at for line in shadow for at, _ in line.points]
    if not times:
        return []
    live = _read(store, what.measurement, what, min(times), max(times) + 1)
    old = [
        Line(f"{name} live", _numbers(one), hues[name])
        for one in live
        if (name := _name(one, what)) in hues
    ]
    return sorted(old + shadow, key=lambda line: line.name)


def _parsed(choice: str, choices: Sequence[Choice]) -> _What | None:
    """The choice, if it is one of those on offer, or the first of them."""
    values = [one.value for one in choices]
    if not values:
        return None
    measurement, field, where = (choice if choice in values else values[0]).split("|", 2)
    key, _, value = where.partition("=")
    return _What(measurement, field, {key: value} if key else {})


def _read(
    store: SeriesSource,
    measurement: str,
    what: _What,
    start_ms: float | None = None,
    stop_ms: float | None = None,
) -> list[Series]:
    return store.query(
        OUTPUTS,
        measurement,
        what.field,
        where=what.where,
        start_ms=start_ms,
        stop_ms=stop_ms,
        limit=NEWEST,
    )


def _recent(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of windows the newest ninety: a year of days is no line that anybody can read."""
    if len(points) < 2 or points[-1][0] - points[0][0] < (len(points) - 1) * HOUR_MS:
        return points
    return points[-WINDOWS:]


def _busiest(series: Iterable[Series], limit: int) -> list[Series]:
    """The lines with the most points; of equals, the first by name."""
    ranked = sorted(series, key=lambda one: (-len(one.points), sorted(one.tags.items())))
    return sorted(ranked[:limit], key=lambda one: sorted(one.tags.items()))


def _name(series: Series, what: _What) -> str:
    rest = [value for key, value in sorted(series.tags.items()) if key not in what.where]
    return " ".join(rest) or what.field


def _numbers(series: Series) -> list[tuple[float, float]]:
    return [
        (at, float(value))
        for at, value in series.points
        if not isinstance(value, str) and math.isfinite(value)
    ]


@dataclass(frozen=True, slots=True)
class History:
    """How a job ran lately."""

    rate: list[tuple[float, float]]
    delay: list[tuple[float, float]]
    out: list[tuple[float, float]]
    busy: list[tuple[float, float]]
    """Percent of the busiest subtask."""
    waiting: list[tuple[float, float]]
    """Percent of the one that waits most for those after it."""


def job_history(job: Job, start_ms: float, stop_ms: float) -> History:
    """Rates, watermark delay and load of the live runs."""
    step = step_for(stop_ms - start_ms, HISTORY)

    def read(field: str) -> list[tuple[float, float]]:
        found = series_store().query(
            ENGINE,
            "job",
            field,
            where={"job": job.name, "purpose": "live"},
            start_ms=start_ms,
            stop_ms=stop_ms,
            step_ms=step,
            aggregate=Aggregate.MEAN,
        )
        return sorted(point for one in found for point in _numbers(one))

    return History(*map(read, ("in", "delay_ms", "out", "busy", "bp")))
