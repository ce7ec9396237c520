"""Tables of all jobs as one person sees them: the rows of theirs, and a sum over those."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from controlplane.live.topics import Family, Payload, Topic

SUM = "sum"
DOWN = frozenset({"RESTARTING", "FAILING", "FAILED", "LOST"})
"""States in which a job does not do its work, though it should."""
_COUNTED = ("running", "jobs", "in")


@dataclass(slots=True)
class FleetView:
    """Filters what is published for everybody: here the topic `fleet`."""

    visible: frozenset[str]
    """Ids of the jobs that this person may see."""
    _rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)
    _looked: Payload = field(default_factory=dict)
    """What was published last of the sum of alerts."""

    def is_news(self, patch: Payload) -> bool:
        """Whether it speaks of a job that was not there at the last snapshot.

        Such a job may be visible or not: the database must be asked again.
        """
        return any(row != SUM and row not in self._known for row in patch)

    def whole(self, value: Payload) -> Payload:
        """A snapshot."""
        self._known = {row for row in value if row != SUM}
        self._rows = {row: dict(value[row]) for row in self._known & self.visible}
        return self._rows | {SUM: self._sum(value.get(SUM) or {})}

    def changed(self, patch: Payload) -> Payload:
        """A patch."""
        mine = {row: columns for row, columns in patch.items() if row in self.visible}
        for row, columns in mine.items():
            if columns is None:
                self._rows.pop(row, None)
                self._known.discard(row)
            else:
                self._rows.setdefault(row, {}).update(columns)
        return mine | {SUM: self._sum(patch.get(SUM) or {})}

    def _sum(self, published: Payload) -> Payload:
        """What the cluster has is told to everybody; counts are over visible jobs only."""
        rows = self._rows.values()
        rates = [row["in"] for row in rows if row.get("in") is not None]
        counts = {
            "jobs": len(rows),
            "running": sum(row.get("state") == "RUNNING" for row in rows),
            "in": sum(rates) if rates else None,
            **attention(rows),
            **_worst(rows),
        }
        return {key: one for key, one in published.items() if key not in _COUNTED} | counts


def attention(rows: Collection[Payload]) -> Payload:
    """How many jobs need attention, and in which way; of no jobs nothing is known."""
    if not rows:
        return {"attention": None, "ailing": None}
    down = sum(row.get("state") in DOWN for row in rows)
    degraded = sum(bool(row.get("why")) and row.get("state") not in DOWN for row in rows)
    named = [f"{down} down"] * bool(down) + [f"{degraded} degraded"] * bool(degraded)
    return {"attention": down + degraded, "ailing": ", ".join(named) or "all is well"}


def _worst(rows: Collection[Payload]) -> Payload:
    """The largest delay and the oldest checkpoint of a job that runs, and whose they are."""
    running = [row for row in rows if row.get("state") == "RUNNING"]
    late = max(
        (row for row in running if row.get("delay_ms") is not None),
        key=lambda row: float(row["delay_ms"]),
        default={},
    )
    old = min(
        (row for row in running if row.get("ckpt_ms") is not None),
        key=lambda row: int(row["ckpt_ms"]),
        default={},
    )
    return {
        "delay": {"delay_ms": late.get("delay_ms"), "goal_ms": late.get("goal_ms")},
        "late": late.get("name"),
        "ckpt_ms": old.get("ckpt_ms"),
        "old": old.get("name"),
    }


class AlertsView(FleetView):
    """The topic `alerts`."""

    def _sum(self, published: Payload) -> Payload:
        """Nothing until rules were looked at: then what is not here is not known."""
        self._looked |= published
        if not self._looked:
            return {}
        rows = [self._rows[row] for row in sorted(self._rows, key=int)]
        firing = sum(row.get("firing", 0) for row in rows)
        return self._looked | {"firing": firing, "open": "".join(row["open"] for row in rows)}


def view_of(topic: Topic, visible: frozenset[str]) -> FleetView:
    """The topic as somebody sees it who may see these jobs."""
    return AlertsView(visible) if topic.family is Family.ALERTS else FleetView(visible)
