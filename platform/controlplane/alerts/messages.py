"""What is said of an alert: as JSON, as Slack reads it, as a mail. Pure."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from controlplane.alerts.measures import UNITS
from controlplane.alerts.models import Alert, AlertRule
from controlplane.moments import epoch_ms

SIGNATURE = "X-Headwater-Signature"
"""`sha256=` and the HMAC of the body under the route's secret, as hex."""


def sentence(alert: Alert, news: str) -> str:
    """What, where, since when."""
    rule, unit = alert.rule, UNITS[AlertRule.Measure(alert.rule.measure)]
    value = "unknown" if alert.value is None else f"{alert.value:g} {unit.sign}"
    what = rule.get_measure_display().lower()
    if news == "resolved":
        return f"{alert.job.name}: {what} is well again, {value}"
    since = f"{alert.since:%Y-%m-%d %H:%M:%S} UTC"
    return f"{alert.job.name}: {what} is {value}, limit {rule.threshold:g}, since {since}"


def as_json(alert: Alert, news: str) -> dict[str, Any]:
    """The body of a webhook."""
    return {
        "alert": alert.pk,
        "news": news,
        "job": alert.job.name,
        "team": alert.rule.team.name,
        "measure": alert.rule.measure,
        "severity": alert.rule.severity,
        "value": alert.value,
        "threshold": alert.rule.threshold,
        "since_ms": epoch_ms(alert.since),
        "fired_ms": epoch_ms(alert.fired_at),
        "resolved_ms": epoch_ms(alert.resolved_at),
        "text": sentence(alert, news),
    }


def as_slack(alert: Alert, news: str) -> dict[str, Any]:
    """The body of an incoming webhook of Slack, and of what reads the same."""
    # Names are text: Slack takes these three for markup.
    text = sentence(alert, news).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": f"[{'resolved' if news == 'resolved' else alert.rule.severity}] {text}"}


def signature(secret: str, body: bytes) -> str:
    """What the receiver compares."""
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"
