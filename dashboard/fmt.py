"""Formatting of numbers, times and states, the same strings as the browser's `fmt.js`.

    412_000 rows/s -> 412 k/s      161_000 ms -> 2m 41s      318e9 bytes -> 296 GiB

Units    rates are per second, durations and points in time are milliseconds.
Order    every function `x_parts` gives (number, unit, number, unit …); templates print the units
         dimmed, tests and labels print them as text.
Missing  None becomes an en dash, never 0.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path

MISSING = "–"
Parts = tuple[str, ...]

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def fixed(value: float, places: int) -> str:
    """The number with `places` decimals, ties away from zero, as JavaScript's toFixed."""
    step = Decimal(1).scaleb(-places)
    return str(Decimal(value).quantize(step, rounding=ROUND_HALF_UP))


def known(value: float | None) -> bool:
    """Whether there is a number to show."""
    return value is not None and math.isfinite(value)


def grouped(value: float) -> str:
    """A whole number with thousands separated."""
    return f"{int(fixed(value, 0)):,}"


def _three_digits(value: float) -> str:
    if value >= 99.95:
        return fixed(value, 0)
    return fixed(value, 1) if value >= 9.995 else fixed(value, 2)


def rate_parts(value: float) -> Parts:
    """Rows per second: three significant digits."""
    if value >= 999.5e3:
        return _three_digits(value / 1e6), "M/s"
    if value >= 999.5:
        return _three_digits(value / 1e3), "k/s"
    return fixed(value, 0 if value >= 9.95 or value == 0 else 1), "/s"


def count_parts(value: float) -> Parts:
    """A number of things: exact below 10,000."""
    if value >= 999.5e6:
        return fixed(value / 1e9, 2), "B"
    if value >= 999.5e3:
        return _three_digits(value / 1e6), "M"
    if value >= 9999.5:
        return _three_digits(value / 1e3), "k"
    return grouped(value), ""


def bytes_parts(value: float) -> Parts:
    """A size, in binary units."""
    step = 0
    while value >= 1023.5 and step < 4:
        value /= 1024
        step += 1
    return _three_digits(value) if step else fixed(value, 0), _BYTE_UNITS[step]


def percent_parts(value: float) -> Parts:
    """A percentage with as many decimals as it takes not to show 100 when it is not."""
    for places in range(4):
        if value >= 100 or float(fixed(value, places)) < 100:
            return fixed(value, places), "%"
    return "99.999", "%"


def times_parts(value: float) -> Parts:
    """How many times as fast as real time."""
    if value >= 999.5e3:
        return _three_digits(value / 1e6), "M×"
    if value >= 9999.5:
        return _three_digits(value / 1e3), "k×"
    if value >= 99.95:
        return grouped(value), "×"
    return "0" if value == 0 else fixed(value, 1 if value >= 9.95 else 2), "×"


def dur_parts(value: float) -> Parts:
    """A duration: two units at most, cut off, never rounded up."""
    ms = int(abs(value))
    seconds = ms // 1000
    if ms < 1000:
        return str(ms), "ms"
    if ms < 10_000:
        return f"{seconds}.{ms % 1000 // 100}", "s"
    if seconds < 60:
        return str(seconds), "s"
    if seconds < 3600:
        return str(seconds // 60), "m", f"{seconds % 60:02}", "s"
    if seconds < 86_400:
        return str(seconds // 3600), "h", f"{seconds % 3600 // 60:02}", "m"
    return str(seconds // 86_400), "d", f"{seconds % 86_400 // 3600:02}", "h"


FORMATS = {
    "rate": rate_parts,
    "count": count_parts,
    "bytes": bytes_parts,
    "percent": percent_parts,
    "times": times_parts,
    "dur": dur_parts,
}


def text(kind: str, value: float | None) -> str:
    """The value as plain text: `412 k/s`, `2m 41s`, or a dash."""
    if value is None or not known(value):
        return MISSING
    parts = FORMATS[kind](value)
    if len(parts) == 4:
        return f"{parts[0]}{parts[1]} {parts[2]}{parts[3]}"
    return f"{parts[0]} {parts[1]}" if parts[1] else parts[0]


def at(ms: float) -> datetime:
    """The point in time, in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def stamp(ms: float | None, now_ms: float) -> str:
    """HH:MM today, D Mon HH:MM this year, D Mon YYYY HH:MM otherwise; UTC."""
    if ms is None:
        return MISSING
    then, now = at(ms), at(now_ms)
    clock = f"{then:%H:%M}"
    if then.year != now.year:
        return f"{then.day} {_MONTHS[then.month - 1]} {then.year} {clock}"
    return clock if then.date() == now.date() else f"{then.day} {_MONTHS[then.month - 1]} {clock}"


def iso(ms: float) -> str:
    """The point in time as a `datetime` attribute, as JavaScript's toISOString."""
    return at(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ago(ms: float, now_ms: float) -> str:
    """How long ago, in whole seconds."""
    seconds = int(max(0, now_ms - ms) // 1000)
    if seconds < 1:
        return "now"
    return f"{f'{seconds} s' if seconds < 10 else text('dur', seconds * 1000)} ago"


def eta(low_s: float | None, high_s: float | None) -> str:
    """A range of time to go."""
    known_ends = [end for end in (low_s, high_s) if end is not None]
    if not known_ends:
        return MISSING
    ends = [text("dur", end * 1000) for end in (known_ends[0], known_ends[-1])]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


@cache
def _states() -> dict[str, dict[str, str]]:
    table: dict[str, dict[str, str]] = json.loads(
        Path(__file__).with_name("states.json").read_text("utf-8")
    )
    return table


def state(name: str | None) -> dict[str, str]:
    """Glyph, word, tone and group of a state, whatever kind of thing has it."""
    return _states().get(
        name or "",
        {"glyph": "queued", "word": name or "Unknown", "tone": "idle", "group": "stopped"},
    )
