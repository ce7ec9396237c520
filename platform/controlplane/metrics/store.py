"""The series store of this installation: InfluxDB where one is configured, else a file."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path

from django.conf import settings

from controlplane.metrics.contract import SeriesKeeper
from controlplane.metrics.embedded.store import SeriesStore
from controlplane.metrics.influx import InfluxSettings, InfluxStore, settings_here

ENGINE = "engine"
"""Bucket of what the collector measures: rates, delays, busy time."""
OUTPUTS = "outputs"
"""Bucket that jobs write their own points to."""
METRICS = "metrics"
"""Bucket that engines report to."""
PLATFORM = "platform"
"""Bucket of what the control plane measures of itself."""


def series_store() -> SeriesKeeper:
    """Where points go and charts come from; one per process."""
    there = settings_here()
    return embedded_store() if there is None else _influx(there)


def embedded_store() -> SeriesStore:
    """The file in this home."""
    return _at(Path(settings.HEADWATER_HOME) / "series.db")


@cache
def _influx(there: InfluxSettings) -> InfluxStore:
    store = InfluxStore(there)
    atexit.register(store.close)  # its client has something to do, and not when modules are gone
    return store


@cache
def _at(path: Path) -> SeriesStore:
    return SeriesStore(path)
