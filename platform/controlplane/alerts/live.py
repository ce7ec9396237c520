"""What is open, as pages follow it: a row per job in the topic `alerts`.

    evaluation, every 10 s ──▶ every row, and when that was
    taken, muted, removed  ──▶ the rows of that job, at once

Guarantee   As of all that is live: the truth is in the database, and what is lost here is told by
            the next evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.alerts.measures import UNITS, shown
from controlplane.alerts.models import OPEN, Alert, AlertRule
from controlplane.live import topics
from controlplane.live.publish import publish
from controlplane.live.queries import latest
from controlplane.moments import epoch_ms

NOTHING: dict[str, Any] = {"firing": 0, "open": ""}


def tell_on_commit(*job_ids: int) -> None:
    """Tell how these jobs stand, once the present transaction is committed."""

    def tell() -> None:
        known = _rows(job_ids)
        publish(topics.ALERTS, {str(one): known.get(str(one), NOTHING) for one in job_ids})

    transaction.on_commit(tell, robust=True)


def tell_all(now: datetime) -> None:
    """Tell how every job stands; one without alerts has no row any more."""
    rows = _rows(None)
    over = dict.fromkeys(latest(topics.ALERTS).keys() - rows.keys() - {"sum"})
    publish(topics.ALERTS, {**over, **rows, "sum": {"at_ms": epoch_ms(now)}})


def _rows(job_ids: Iterable[int] | None) -> dict[str, dict[str, Any]]:
    """The rows of these jobs, of all when None; of those that have an open alert."""
    alerts = Alert.objects.filter(state__in=OPEN).select_related("rule").order_by("pk")
    if job_ids is not None:
        alerts = alerts.filter(job__in=job_ids)
    rows: dict[str, dict[str, Any]] = {}
    for alert in alerts:
        row = rows.setdefault(str(alert.job_id), dict(NOTHING))
        row["firing"] += alert.state == Alert.State.FIRING
        row["open"] += f"{_mark(alert)} "
        row[f"v{alert.pk}"] = shown(UNITS[AlertRule.Measure(alert.rule.measure)], alert.value)
    return rows


def _mark(alert: Alert) -> str:
    """Changes when the line of this alert on the page would, but for its value."""
    times = (alert.muted_until, alert.acknowledged_at, alert.well_since)
    return "-".join([str(alert.pk), alert.state, *(str(epoch_ms(one) or "") for one in times)])
