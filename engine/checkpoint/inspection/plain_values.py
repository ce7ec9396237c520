"""Values of state as plain JSON, for people and for programs that ask over HTTP.

Shapes   bytes are hex digits, times ISO 8601, durations seconds, decimals text; a float that JSON
         cannot write is "NaN", "Infinity" or "-Infinity", as Flink writes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta

from engine.connectors.contract import Json


def plain(value: object) -> Json:
    r"""One value, with all that is in it.

    >>> plain({"n": 2**60, "at": date(2013, 3, 1), "raw": b"\x01", "x": [float("inf")]})
    {'n': 1152921504606846976, 'at': '2013-03-01', 'raw': '01', 'x': ['Infinity']}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case bytes():
            return value.hex()
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {str(name): plain(part) for name, part in value.items()}
        case Sequence():
            return [plain(part) for part in value]
        case _:
            return str(value)


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
