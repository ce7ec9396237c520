"""The series store of this installation."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from django.conf import settings

from controlplane.metrics.embedded.store import SeriesStore

ENGINE = "engine"
"""Bucket of what the collector measures: rates, delays, busy time."""
OUTPUTS = "outputs"
"""Bucket that jobs write their own points to."""
METRICS = "metrics"
"""Bucket that engines report to."""
PLATFORM = "platform"
"""Bucket of what the control plane measures of itself."""


def series_store() -> SeriesStore:
    """The store in this home; one per process."""
    return _at(Path(settings.HEADWATER_HOME) / "series.db")


@cache
def _at(path: Path) -> SeriesStore:
    return SeriesStore(path)
