"""Lengths of time as people write them: "500ms", "1s", "5m", "24h", "1d".

Units    microseconds inside; "m" is a minute. Months and years have no fixed length: refused.
         Also as Flink's settings have them: "10 min", "2 hours", and ISO 8601's "PT1H30M".
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

from engine.elements import Micros
from engine.errors import ConfigError, GraphError

Duration = str | timedelta | int
"""What people may write; an int is microseconds."""

_UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
_WORDS = {
    "micro": "us",
    "microsecond": "us",
    "milli": "ms",
    "millisecond": "ms",
    "sec": "s",
    "second": "s",
    "minute": "m",
    "hour": "h",
    "day": "d",
    "week": "w",
}
_ISO = re.compile(r"P(\d+D)?(?:T(\d+H)?(\d+M)?(\d+(?:\.\d+)?S)?)?")
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")
_SHOWN = ("w", "d", "h", "m", "s", "ms", "us")


def parse_duration(value: Duration, subject: str = "duration") -> Micros:
    """Turn text, a timedelta or plain microseconds into microseconds. Raises ConfigError.

    >>> parse_duration("1h 30m"), parse_duration(timedelta(milliseconds=5))
    (5400000000, 5000)
    """
    if isinstance(value, timedelta):
        return Micros(value // timedelta(microseconds=1))
    if isinstance(value, int):
        return Micros(value)
    iso = _ISO.fullmatch(value.strip())
    text = " ".join(filter(None, iso.groups())).lower() if iso else value
    total, at = Decimal(), 0
    for part in _PART.finditer(text):
        unit = _unit(part[2])
        if part.start() != at or unit is None:
            break
        total, at = total + Decimal(part[1]) * unit, part.end()
    if not text.strip() or at != len(text) or total != int(total):
        msg = f"{subject} is not a length of time: got {value!r}; write e.g. '500ms', '1s' or '24h'"
        raise ConfigError(msg)
    return Micros(int(total))


def _unit(name: str) -> int | None:
    """Microseconds of a unit, by its short name or its word, singular or plural."""
    known = _UNITS.get(name)
    return known or _UNITS.get(_WORDS.get(name.removesuffix("s"), ""))


def positive_duration(
    value: Duration,
    subject: str,
    example: str,
    error: type[ConfigError | GraphError] = GraphError,
) -> Micros:
    """As `parse_duration`, and refuse what is not above zero. Raises ConfigError, and `error`.

    >>> positive_duration("0s", "gap", "session('30m')")
    Traceback (most recent call last):
    engine.errors.GraphError: gap must be positive: got '0s'; pass e.g. session('30m')
    """
    micros = parse_duration(value, subject)
    if micros <= 0:
        msg = f"{subject} must be positive: got {value!r}; pass e.g. {example}"
        raise error(msg)
    return micros


def format_duration(micros: int) -> str:
    """Write microseconds the way `parse_duration` reads them.

    >>> format_duration(5_400_000_000), format_duration(86_400_000_000), format_duration(0)
    ('1h 30m', '1d', '0s')
    """
    parts, rest = [], micros
    for unit in _SHOWN:
        count, rest = divmod(rest, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts) or "0s"
