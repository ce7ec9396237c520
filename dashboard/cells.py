"""HTML of a value in a given format, the same as the browser's `formats` in `fmt.js`.

    cell("rate", 412_000)  ->  <span class="n">412<span class="u">k/s</span></span>

The page prints a value with `cell`, and `data-b="topic path format"` beside it tells the browser
how to print the next one. Every string that comes from outside is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString, mark_safe

from controlplane.moments import now_ms
from dashboard import fmt

MISSING = mark_safe('<span class="mut">–</span>')
_TONE_CLASS = {"crit": "t-crit", "warn": "t-warn", "busy": "sub"}


def icon(name: str, size: str = "") -> SafeString:
    """One of the sprite's icons."""
    return format_html('<svg class="i {}" aria-hidden="true"><use href="#i-{}"/></svg>', size, name)


def glyph(name: str) -> SafeString:
    """One of the sprite's state glyphs."""
    return format_html('<svg class="g" aria-hidden="true"><use href="#g-{}"/></svg>', name)


def number(kind: str, value: float | None) -> SafeString:
    """A number with its units dimmed."""
    if value is None or not fmt.known(value):
        return MISSING
    parts = fmt.FORMATS[kind](value)
    if len(parts) == 4:
        return format_html(
            '<span class="n">{}<span class="u t">{}</span> {}<span class="u t">{}</span></span>',
            *parts,
        )
    if not parts[1]:
        return format_html('<span class="n">{}</span>', parts[0])
    return format_html('<span class="n">{}<span class="u">{}</span></span>', *parts)


def whole(value: float | None) -> SafeString:
    """A number in full."""
    return (
        MISSING if value is None else format_html('<span class="n">{}</span>', fmt.grouped(value))
    )


def plain(value: float | None) -> SafeString:
    """A number of no known unit, with four significant digits."""
    return MISSING if value is None else format_html('<span class="n">{}</span>', f"{value:.4g}")


def _time(ms: float | None, shape: str, text: str) -> SafeString:
    if ms is None:
        return MISSING
    return format_html('<time datetime="{}" data-as="{}">{}</time>', fmt.iso(ms), shape, text)


def stamp(ms: float | None) -> SafeString:
    """A point in time."""
    return _time(ms, "stamp", fmt.stamp(ms, now_ms()))


def second(ms: float | None) -> SafeString:
    """A point in time to the second, of a moment that is near."""
    return _time(ms, "second", "" if ms is None else f"{fmt.at(ms):%H:%M:%S}")


def ago(ms: float | None) -> SafeString:
    """How long ago; the browser counts on."""
    return _time(ms, "ago", "" if ms is None else fmt.ago(ms, now_ms()))


def age(ms: float | None) -> SafeString:
    """How old, without the word."""
    return _time(ms, "age", "" if ms is None else fmt.ago(ms, now_ms()).removesuffix(" ago"))


def left(ms: float | None) -> SafeString:
    """How long until then."""
    if ms is None:
        return MISSING
    away = ms - now_ms()
    text = "now" if away <= 0 else "in " + fmt.ago(0, away).removesuffix(" ago")
    return _time(ms, "left", text)


def badge(name: str | None, extra: str = "") -> SafeString:
    """Glyph and word of a state."""
    state = fmt.state(name)
    return format_html(
        '<span class="st{}{}">{}<span>{}</span></span>',
        f" {extra}" if extra else "",
        f" {state['tone']}",
        glyph(state["glyph"]),
        state["word"],
    )


def pill(name: str | None) -> SafeString:
    """A state with a tint, for a page's head."""
    return badge(name, "pill")


def mark(name: str | None) -> SafeString:
    """The glyph alone; the word is for screen readers."""
    state = fmt.state(name)
    return format_html(
        '<span class="st {}">{}<span class="vh">{}</span></span>',
        state["tone"],
        glyph(state["glyph"]),
        state["word"],
    )


def word(name: str | None) -> SafeString:
    """The word alone; colour only where something is wrong."""
    state = fmt.state(name)
    return format_html(
        '<span class="{}">{}</span>', _TONE_CLASS.get(state["tone"], "mut"), state["word"]
    )


def _share(value: float | None) -> str:
    return fmt.fixed(max(0.0, min(100.0, value or 0.0)), 1).removesuffix(".0")


def bar(value: float | None, tone: str = "ink") -> SafeString:
    """One bar out of a hundred."""
    return format_html(
        '<svg class="mbar" aria-hidden="true"><rect class="{}" width="{}%" height="100%"/></svg>',
        tone,
        _share(value),
    )


def busy_bar(row: Mapping[str, Any] | None) -> SafeString:
    """Busy solid, waiting hatched, idle empty."""
    if not row or row.get("busy") is None:
        return mark_safe('<svg class="mbar" aria-hidden="true"></svg>')
    busy, waiting = row["busy"], row.get("bp") or 0
    at, width = _share(busy), _share(waiting)
    return format_html(
        '<svg class="mbar" aria-hidden="true"><rect class="{}" width="{}%" height="100%"/>'
        '<rect class="{}" x="{}%" width="{}%" height="100%"/>'
        '<rect class="hatch" x="{}%" width="{}%" height="100%"/></svg>',
        "warn" if busy > 90 else "ink",
        at,
        "crit" if waiting > 50 else "warn" if waiting > 10 else "",
        at,
        width,
        at,
        width,
    )


def _percent_cell(value: float, tone: str) -> SafeString:
    return format_html(
        '<span class="n{}">{}<span class="u">%</span></span>', tone, fmt.fixed(value, 0)
    )


def busy(row: Mapping[str, Any] | None) -> SafeString:
    """The bar and its number."""
    if not row or row.get("busy") is None:
        return MISSING
    value = row["busy"]
    return format_html("{}{}", busy_bar(row), _percent_cell(value, " t-warn" if value > 90 else ""))


def waiting(value: float | None) -> SafeString:
    """Share of time that it waits for those after it."""
    if value is None or value < 0.5:
        return MISSING
    return _percent_cell(value, " t-crit" if value > 50 else " mut")


def progress(value: float | None) -> SafeString:
    """A bar with its percentage."""
    if value is None:
        return MISSING
    return format_html('{}<span class="n">{}</span>', bar(value, "busy"), number("percent", value))


def tally(value: float | None) -> SafeString:
    """A count of things that should not happen."""
    if value is None:
        return MISSING
    tone = "t-crit" if value > 2 else "t-warn" if value > 0 else "mut"
    return format_html('<span class="{}">{}</span>', tone, fmt.grouped(value))


def alarm(value: float | None) -> SafeString:
    """A count of things that somebody has to look at."""
    if value is None:
        return MISSING
    return format_html(
        '<span class="n{}">{}</span>', " t-crit" if value > 0 else "", fmt.grouped(value)
    )


BADLY_LATE = 3
"""Times its objective."""


def delay(row: Mapping[str, Any] | None) -> SafeString:
    """A delay; with an objective also a bar, in the middle of which the objective is."""
    late = row.get("delay_ms") if row else None
    goal = row.get("goal_ms") if row else None
    if late is None or not goal:
        return number("dur", late)
    tone = "crit" if late > BADLY_LATE * goal else "warn" if late > goal else ""
    return format_html(
        '<span class="{}">{}</span><svg class="bul" aria-hidden="true">'
        '<rect class="{}" width="{}%" height="100%"/>'
        '<line x1="50%" x2="50%" y1="0" y2="100%"/></svg>',
        f"t-{tone}" if tone else "",
        number("dur", late),
        tone or "ink",
        _share(50 * late / goal),
    )


def goal(value: float | None) -> str:
    """An objective, in words."""
    return f"objective {fmt.text('dur', value)}" if value else "no objective"


def took(checkpoint: Mapping[str, Any] | None) -> str:
    """What the last checkpoint cost, in words."""
    if not checkpoint:
        return "none of this run yet"
    duration, size = fmt.text("dur", checkpoint["dur_ms"]), fmt.text("bytes", checkpoint["bytes"])
    return f"took {duration}, {size}"


def up(value: float | None) -> str:
    """For how long a job has run without a break, in words."""
    return "does not run" if value is None else f"up {fmt.text('dur', value)}"


def some(value: float | None) -> SafeString:
    """A count where none is nothing to see."""
    return escape(fmt.grouped(value)) if value else mark_safe("")


def text(value: object) -> SafeString:
    """Plain text."""
    return MISSING if value in (None, "") else escape(value)


CELLS: dict[str, Callable[[Any], str]] = {
    **{kind: partial(number, kind) for kind in fmt.FORMATS},
    "whole": whole,
    "plain": plain,
    "time": stamp,
    "second": second,
    "ago": ago,
    "age": age,
    "left": left,
    "badge": badge,
    "pill": pill,
    "mark": mark,
    "word": word,
    "busy": busy,
    "busyBar": busy_bar,
    "busyBarOf": partial(bar, tone="busy"),
    "waiting": waiting,
    "progress": progress,
    "tally": tally,
    "alarm": alarm,
    "delay": delay,
    "goal": goal,
    "took": took,
    "up": up,
    "text": text,
    "some": some,
}


def cell(kind: str, value: Any) -> SafeString:
    """The value in that format; to a template, what is not there is an empty text."""
    return conditional_escape(CELLS[kind](None if value == "" else value))
