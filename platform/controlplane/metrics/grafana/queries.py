"""The Flux of panels: what is read, kept apart by which tags, over which window.

v.timeRangeStart … v.timeRangeStop, v.windowPeriod     of the page, filled in by Grafana
${job}                                                  what is chosen above
"""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.metrics.flux import text

JOB = "${job}"


def lines(
    bucket: str,
    measurement: str,
    fields: Sequence[str],
    by: Sequence[str],
    *,
    where: Sequence[tuple[str, str]] = (),
    how: str = "mean",
) -> str:
    """One line for each set of tags, and field when there are several."""
    wanted = [f"r._measurement == {text(measurement)}", _one_of(fields)]
    wanted += [f"r[{text(tag)}] == {_value(value)}" for tag, value in where]
    kept = ["_field", *by] if len(fields) > 1 else list(by)
    steps = [
        f"from(bucket: {text(bucket)})",
        "range(start: v.timeRangeStart, stop: v.timeRangeStop)",
        f"filter(fn: (r) => {' and '.join(wanted)})",
        f"group(columns: {_list(kept)})",
        f"aggregateWindow(every: v.windowPeriod, fn: {how}, createEmpty: false)",
        f"keep(columns: {_list(['_time', '_value', *kept])})",
    ]
    return "\n  |> ".join(steps)


def jobs() -> str:
    """Names of the jobs that have run within the range of the page."""
    return (
        'from(bucket: "engine")\n  |> range(start: v.timeRangeStart, stop: v.timeRangeStop)\n'
        '  |> filter(fn: (r) => r._measurement == "job" and r._field == "busy")\n'
        '  |> first()\n  |> group()\n  |> keep(columns: ["job"])\n  |> distinct(column: "job")\n'
        '  |> keep(columns: ["_value"])'
    )


def events(kinds: Sequence[str], *, of_job: bool) -> str:
    """What happened, one row each; Grafana knows columns of annotations by these names."""
    wanted = ['r._measurement == "event"']
    wanted.append("(" + " or ".join(f"r.kind == {text(kind)}" for kind in kinds) + ")")
    if of_job:
        wanted.append(f"r.job == {_value(JOB)}")
    return (
        'from(bucket: "platform")\n  |> range(start: v.timeRangeStart, stop: v.timeRangeStop)\n'
        f"  |> filter(fn: (r) => {' and '.join(wanted)})\n"
        '  |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")\n'
        '  |> group()\n  |> keep(columns: ["_time", "title", "text", "kind"])\n'
        '  |> rename(columns: {kind: "tags"})'
    )


def _one_of(fields: Sequence[str]) -> str:
    return "(" + " or ".join(f"r._field == {text(field)}" for field in fields) + ")"


def _value(value: str) -> str:
    """A literal; what Grafana fills in must not be escaped."""
    return f'"{value}"' if value == JOB else text(value)


def _list(names: Sequence[str]) -> str:
    return "[" + ", ".join(text(name) for name in names) + "]"
