"""Template tags: formatted values, live cells, icons, and what surrounds a page.

{{ run.started_at|ago }}                            3 min ago, counted on by the browser
{% live "job.7" "in" "rate" figures %}              a value that the socket keeps up to date
{% icon "camera" %} {% state job.state "pill" %}
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django import template
from django.http import HttpRequest
from django.template.context import RequestContext
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from controlplane.jobs.shell import Shell, shell
from controlplane.moments import epoch_ms, now_ms
from controlplane.snapshots.queries import CheckpointHistory, CheckpointLine
from dashboard import cells, fmt, pictures

register = template.Library()
_JSON_ESCAPES = {ord(">"): "\\u003E", ord("<"): "\\u003C", ord("&"): "\\u0026"}


def _ms(moment: datetime | float | str | None) -> float | None:
    """Epoch ms; to a template, what is not there is an empty text."""
    if isinstance(moment, str):
        return None
    return epoch_ms(moment) if isinstance(moment, datetime) else moment


@register.filter(name="as")
def as_format(value: Any, kind: str) -> SafeString:
    """The value in a format: `{{ size|as:"bytes" }}`."""
    return cells.cell(kind, _ms(value) if isinstance(value, datetime) else value)


@register.filter
def words(value: float | None, kind: str) -> str:
    """The value as plain text, for labels and titles."""
    return fmt.text(kind, value)


@register.filter
def at(moment: datetime | float | None) -> SafeString:
    """A point in time."""
    return cells.stamp(_ms(moment))


@register.filter
def ago(moment: datetime | float | None) -> SafeString:
    """How long ago."""
    return cells.ago(_ms(moment))


@register.filter
def left(moment: datetime | float | None) -> SafeString:
    """How long until then."""
    return cells.left(_ms(moment))


@register.filter
def sentence(text: str) -> str:
    """An error's text as a sentence: capital letter, full stop; a name or path stays as it is."""
    text = str(text).strip()
    if not text:
        return ""
    first, _, rest = text.partition(" ")
    first = first.capitalize() if rest and first.isalpha() and first.islower() else first
    return f"{first} {rest}".strip() + ("" if text[-1] in ".!?…" else ".")


@register.filter
def verdict(text: str) -> str:
    """What a restore check says of an operator, without naming it or its outcome again."""
    subject, colon, rest = str(text).partition(": ")
    if rest == "restored":
        return ""
    return sentence(rest if colon and subject.startswith("operator ") else text)


@register.filter
def unscored(name: str) -> str:
    """A name of the engine's as words."""
    return name.replace("_", " ").lower()


@register.filter
def plain(number: float) -> str:
    """A number without needless zeros."""
    return f"{number:g}"


_MARKS = {"flag": "deploy", "diamond": "savepoint", "x": "failed"}


@register.filter
def mark_glyph(kind: str) -> str:
    """The glyph of a timeline's mark; nothing turns in a list of what is over."""
    return _MARKS.get(kind, "degraded" if kind in {"ring", "band"} else "running")


@register.filter
def get(table: Mapping[Any, Any] | None, key: Any) -> Any:
    """A value of a mapping."""
    return (table or {}).get(key)


@register.filter
def tall(history: CheckpointHistory, line: CheckpointLine) -> float:
    """Height of a checkpoint's bar, in percent."""
    return history.tall(line)


@register.filter
def above(history: CheckpointHistory, line: CheckpointLine) -> float:
    """What is empty above it."""
    return round(100 - history.tall(line), 1)


@register.simple_tag
def live(
    topic: str,
    path: str,
    kind: str,
    values: Mapping[str, Any] | None = None,
    css: str = "",
    **now: Any,
) -> SafeString:
    """A cell that the socket writes to.

    The first paint shows `value=…`, or what stands at `path` in `values`, the topic's whole value.
    """
    value = now["value"] if "value" in now else _reach(values, path)
    return format_html(
        '<span class="lv{}" data-b="{} {} {}">{}</span>',
        f" {css}" if css else "",
        topic,
        path,
        kind,
        cells.cell(kind, value),
    )


def _reach(values: Any, path: str) -> Any:
    for step in path.split(".") if path != "." else ():
        values = values.get(step) if isinstance(values, Mapping) else None
    return values


@register.simple_tag
def server_ms() -> str:
    """Epoch ms by the server's clock: ages of the page count with it, not with the browser's."""
    return f"{now_ms():.0f}"


@register.simple_tag
def icon(name: str, size: str = "") -> SafeString:
    """An icon of the sprite."""
    return cells.icon(name, size)


@register.simple_tag
def glyph(name: str) -> SafeString:
    """A state glyph of the sprite."""
    return cells.glyph(name)


@register.simple_tag
def state(name: str, shape: str = "badge") -> SafeString:
    """A state: badge, pill, mark (glyph alone) or word."""
    return cells.cell(shape, name)


@register.filter
def tone(name: str) -> str:
    """The tone of a state."""
    return fmt.state(name)["tone"]


@register.simple_tag
def bar(value: float | None, tone: str = "ink") -> SafeString:
    """A bar out of a hundred."""
    return cells.bar(value, tone)


@register.simple_tag
def eta(figures: Mapping[str, Any]) -> str:
    """When a replay meets the live job, as a range."""
    if figures.get("stalled"):
        return "not catching up"
    low, high = figures.get("eta_low_s"), figures.get("eta_high_s")
    return "not known yet" if low is None else fmt.eta(low, high)


@register.simple_tag
def idempotency_key() -> SafeString:
    """The hidden field that makes a form's second sending the same wish."""
    return format_html('<input type="hidden" name="idempotency_key" value="{}">', uuid.uuid4().hex)


@register.simple_tag
def json_block(name: str, value: Any) -> SafeString:
    """Data for a script, as text that no parser takes for markup."""
    dumped = json.dumps(value, default=_plain).translate(_JSON_ESCAPES)
    block = '<script id="{}" type="application/json">{}</script>'
    return format_html(block, name, mark_safe(dumped))  # noqa: S308 - escaped just above


def _plain(value: Any) -> Any:
    """Frozen dataclasses (with slots) as objects."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


@register.simple_tag(takes_context=True)
def page_shell(context: RequestContext) -> Shell:
    """Navigation counts, jump list and running operations of this person."""
    request: HttpRequest = context["request"]
    return shell(request.user)  # type: ignore[arg-type]  # pages need a login


@register.simple_tag(takes_context=True)
def here(context: RequestContext, name: str) -> SafeString:
    """Marks the navigation entry of this page."""
    current = context.get("section") == name
    return mark_safe(' aria-current="page"') if current else SafeString("")


@register.simple_tag
def count_bars(counts: Sequence[float], tone: str = "crit") -> SafeString:
    """Counts over time as a strip of bars."""
    return pictures.bars(counts, 240, 28, tone)


@register.simple_tag(takes_context=True)
def without_query(
    context: RequestContext, name: str, value: str, values: Sequence[str]
) -> SafeString:
    """The page's query with these values of a name, but for one."""
    query = context["request"].GET.copy()
    query.setlist(name, [one for one in values if one != value])
    return escape(query.urlencode())


@register.filter
def to(count: int) -> range:
    """The whole numbers from 0 up to that one, without it."""
    return range(count)
