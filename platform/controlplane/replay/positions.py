"""Where the sources of a replay begin instead of at its savepoint: by uid, earliest or an ISO time.

    {"flights": "earliest", "control": "2013-03-01T00:00:00+00:00"}

What a choice means, and whether a source can be searched by time, the engine says in its preflight.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from controlplane.access.errors import invalid
from controlplane.snapshots.models import Savepoint

EARLIEST = "earliest"
Positions = Mapping[str, str]


def checked_positions(savepoint: Savepoint, given: Positions) -> dict[str, str]:
    """The choices, with times as the engine reads them; UTC without a zone. Raises Refused."""
    known = savepoint.source_positions
    for uid in given:
        if uid not in known:
            there = ", ".join(sorted(known)) or "none that is known"
            msg = f"savepoint {savepoint.pk} has no source {uid}: it has {there}"
            raise invalid(msg, "positions")
    return {uid: _where(uid, where) for uid, where in sorted(given.items())}


def setting_of(positions: Positions) -> str:
    """As the engine has it.

    >>> setting_of({"flights": "earliest", "control": "2013-03-01T00:00:00+00:00"})
    'flights=earliest; control=2013-03-01T00:00:00+00:00'
    """
    return "; ".join(f"{uid}={where}" for uid, where in positions.items())


def _where(uid: str, where: str) -> str:
    if where == EARLIEST:
        return where
    try:
        moment = datetime.fromisoformat(where.strip())
    except ValueError:
        msg = (
            f"source {uid} cannot begin there: got {where!r}; give earliest, or a time in UTC such "
            "as 2013-06-01 00:00"
        )
        raise invalid(msg, "positions") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
