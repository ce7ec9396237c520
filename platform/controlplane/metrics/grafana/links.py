"""Links from pages to the panel of Grafana that shows the same, at the same time.

HEADWATER_GRAFANA_URL    e.g. https://grafana.example.org; without it there are no links
"""

from __future__ import annotations

import os
from urllib.parse import urlencode

from controlplane.metrics.grafana.model import Dashboard

VARIABLE = "HEADWATER_GRAFANA_URL"


def link(
    dashboard: Dashboard,
    *,
    job: str | None = None,
    panel: str | None = None,
    minutes: int | None = None,
) -> str | None:
    """The address of a dashboard or of one of its panels, over the last minutes.

    None without a Grafana.
    """
    base = os.environ.get(VARIABLE, "").rstrip("/")
    if not base.startswith(("http://", "https://")):
        return None
    asked: dict[str, str | int] = {}
    if job is not None:
        asked["var-job"] = job
    if minutes is not None:
        asked |= {"from": f"now-{minutes}m", "to": "now"}
    if panel is not None:
        asked["viewPanel"] = next(n for n, one in dashboard.panels.items() if one.title == panel)
    return f"{base}/d/{dashboard.uid}" + (f"?{urlencode(asked)}" if asked else "")
