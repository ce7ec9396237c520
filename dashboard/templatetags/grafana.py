"""Links to Grafana, where there is one: {% grafana "job" job.name minutes=60 %}."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from controlplane.metrics.grafana.dashboards import (
    CHECKPOINTS,
    CONTROL_PLANE,
    FLEET,
    JOB_PAGE,
    REPLAY,
)
from controlplane.metrics.grafana.links import link

register = template.Library()

_PAGES = {
    "fleet": FLEET,
    "job": JOB_PAGE,
    "checkpoints": CHECKPOINTS,
    "replays": REPLAY,
    "control plane": CONTROL_PLANE,
}


@register.simple_tag
def grafana(page: str, job: str | None = None, minutes: int = 60, panel: str = "") -> SafeString:
    """A button that opens the same in Grafana, over the last minutes; nothing without a Grafana."""
    address = link(_PAGES[page], job=job, panel=panel or None, minutes=minutes)
    if address is None:
        return mark_safe("")
    return format_html(
        '<a class="btn q sm" href="{}" target="_blank" rel="noopener noreferrer"'
        ' title="The same over the last {} min in Grafana, in a new tab">Grafana</a>',
        address,
        minutes,
    )
