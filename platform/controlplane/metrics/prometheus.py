"""The control plane's `/metrics`: what its database knows, and what this process has counted.

Shapes   Prometheus' text format 0.0.4; names begin with `headwater_controlplane_`.
Source   Prometheus, Exposition formats, text-based format.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from controlplane.metrics.platform import gauges
from controlplane.metrics.self_measure import COUNTERS, measures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "headwater_controlplane_"


def text(now: datetime) -> str:
    """All of it."""
    return "".join(f"{line}\n" for line in _lines(now))


def _lines(now: datetime) -> Iterator[str]:
    for gauge in gauges(now):
        yield from _metric(gauge.name, gauge.help, "gauge", gauge.value)
    counted = measures().look()
    for name, (kind, meaning) in sorted(COUNTERS.items()):
        shown = f"{name}_total" if kind == "counter" else name
        yield from _metric(shown, f"{meaning} Of this process.", kind, counted.get(name, 0))


def _metric(name: str, meaning: str, kind: str, value: float) -> Iterator[str]:
    yield f"# HELP {PREFIX}{name} {meaning}"
    yield f"# TYPE {PREFIX}{name} {kind}"
    yield f"{PREFIX}{name} {value:.15g}"
