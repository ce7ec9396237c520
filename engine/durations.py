"""Lengths of time as people write them: "500ms", "1s", "5m", "24h", "1d".

Units    microseconds inside; "m" is a minute. Months and years have no fixed length: refused.
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
    total, at = Decimal(), 0
    for part in _PART.finditer(value):
        if part.start() != at or part[2] not in _UNITS:
            break
        total, at = total + Decimal(part[1]) * _UNITS[part[2]], part.end()
    if not value.strip() or at != len(value) or total != int(total):
        msg = f"{subject} is not a length of time: got {value!r}; write e.g. '500ms', '1s' or '24h'"
        raise ConfigError(msg)
    return Micros(int(total))


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
