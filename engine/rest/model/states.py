"""Live state: what one key has in one state of a running job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.checkpoint.inspection.questions import StateRows

UNNAMED = ""
"""Stands for the only column of a key, when nobody has named it."""


@dataclass(frozen=True, slots=True)
class StateQuery:
    """Whose state, which one, and which key of it."""

    operator: str
    """Its uid."""
    state: str
    key: Mapping[str, str]
    """Columns of the key to their values as text; `UNNAMED` may stand for the only column. Empty
    for a state that has no keys: broadcast state."""


@dataclass(frozen=True, slots=True)
class StateValue:
    """Rows of the canonical table of a state, those of one key."""

    kind: str
    """How the state is laid out: value, list, map, frames, runs."""
    rows: StateRows
    """One for a value; for a list one per element, for a map per entry, for runs per slice."""

    @property
    def is_found(self) -> bool:
        """Whether the key has anything."""
        return bool(self.rows.rows)

    def to_json(self) -> Mapping[str, Any]:
        """Return plain JSON."""
        return {"kind": self.kind, "found": self.is_found, **self.rows.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StateValue:
        """Read what `to_json` gave."""
        return cls(str(value["kind"]), StateRows.from_json(value))
