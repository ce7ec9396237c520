"""Tables of all jobs as one person sees them: the rows of theirs, and a sum over those."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from controlplane.live.topics import Family, Payload, Topic

SUM = "sum"
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
        rates = [row["in"] for row in self._rows.values() if row.get("in") is not None]
        counts = {
            "jobs": len(self._rows),
            "running": sum(row.get("state") == "RUNNING" for row in self._rows.values()),
            "in": sum(rates) if rates else None,
        }
        return {key: one for key, one in published.items() if key not in _COUNTED} | counts


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
