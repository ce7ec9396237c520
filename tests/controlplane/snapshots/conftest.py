"""A job with savepoints that lie on the fake engine's storage."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from controlplane.backends.contract import SavepointSummary
from controlplane.backends.fake_snapshots import CONTENTS
from controlplane.snapshots.models import Savepoint

Make = Callable[..., Savepoint]


@pytest.fixture
def root(settings) -> Path:
    """Where savepoints are kept."""
    return Path(settings.HEADWATER_SAVEPOINTS)


@pytest.fixture
def make(running, engine, clock, root) -> Make:
    """A complete savepoint that is so many days old, in the catalogue and stored."""

    def one(age_days: float = 0, origin: str = "scheduled", **more: object) -> Savepoint:
        number = len(engine.savepoints) + 1
        location = str(more.pop("location", root / running.name / "0a1b" / f"savepoint-{number}"))
        engine.savepoints.setdefault(
            location,
            SavepointSummary(location, "flights", number, 4096, None, {}, None, CONTENTS),
        )
        taken_at = clock() - timedelta(days=age_days)
        row = Savepoint.objects.create(
            job=running,
            origin=origin,
            status="completed",
            location=location,
            taken_at=taken_at,
            size_bytes=4096,
            **more,
        )
        Savepoint.objects.filter(pk=row.pk).update(created_at=taken_at)
        row.refresh_from_db()
        return row

    return one
