"""Looks into savepoints: what one holds, some rows of it, and in what two of them differ.

    contents of two ─contents_diff─▶ operators and states that came, went or changed shape or size
    both folders ─engine─▶ rows that are equal, changed, only on one side

Rows are data of the team's users: reading some needs the operator role and is audited.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib.auth.models import User

from controlplane.access.errors import Refused, conflict, invalid
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.backends.errors import EngineAway, EngineError, UnknownTrigger
from controlplane.backends.registry import client_for
from controlplane.backends.snapshot_contract import Comparison, StateRows
from controlplane.snapshots.keeping import DECIDABLE
from controlplane.snapshots.models import Savepoint

T = TypeVar("T")

MOST_ROWS = 50
COMPARISONS = uuid.UUID("5b0f9d0e-7d8e-4f0b-9c53-2f6d4f0f5a11")
"""Namespace of the ids of comparisons: the same two savepoints are compared once."""


def read_rows(
    savepoint: Savepoint, actor: User, operator: str, state: str, key: Mapping[str, str]
) -> StateRows:
    """At most fifty rows of one state. Operator."""
    require(actor, savepoint.job, Role.OPERATOR)
    _check_there(savepoint)
    engine = client_for(savepoint.job.cluster)
    found = _asked(lambda: engine.read_state(savepoint.location, operator, state, key, MOST_ROWS))
    asked = {"operator": operator, "state": state, "key": dict(key), "rows": len(found.rows)}
    record(actor, "savepoint.read", str(savepoint), job=savepoint.job, after=asked)
    return found


def key_of(text: str) -> dict[str, str]:
    """Columns of a key with their values, as people write them: `carrier=UA, day=3`.

    Raises Refused (400).
    """
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if any(not name.strip() or not equals for name, equals, _ in pairs):
        msg = f"key must name columns: got {text[:60]}; e.g. carrier=UA, day=3"
        raise invalid(msg, "key")
    return {name.strip(): value.strip() for name, _, value in pairs}


def compare(left: Savepoint, right: Savepoint, actor: User) -> Comparison:
    """Where the comparison of two savepoints stands; asked first, it begins. Operator."""
    for savepoint in (left, right):
        require(actor, savepoint.job, Role.OPERATOR)
        _check_there(savepoint)
    engine = client_for(left.job.cluster)
    trigger_id = uuid.uuid5(COMPARISONS, f"{left.location}\n{right.location}").hex

    def look() -> Comparison:
        try:
            return engine.comparison(trigger_id)
        except UnknownTrigger:
            engine.compare(left.location, right.location, trigger_id)
            return engine.comparison(trigger_id)

    return _asked(look)


@dataclass(frozen=True, slots=True)
class StateChange:
    """One state on both sides; a side that does not have it is None."""

    uid: str
    state: str
    left: Mapping[str, Any] | None
    right: Mapping[str, Any] | None

    @property
    def outcome(self) -> str:
        """added, removed, reshaped, resized or same."""
        if self.left is None or self.right is None:
            return "added" if self.left is None else "removed"
        if any(self.left[name] != self.right[name] for name in ("kind", "keys", "values")):
            return "reshaped"
        sizes = ("rows", "size_bytes")
        return "resized" if any(self.left[n] != self.right[n] for n in sizes) else "same"

    @property
    def shapes(self) -> tuple[str, str]:
        """Columns on both sides, when they differ."""
        return _shape(self.left), _shape(self.right)


def contents_diff(left: Mapping[str, Any], right: Mapping[str, Any]) -> tuple[StateChange, ...]:
    """Every state of either side, sorted by operator and name."""
    ours, theirs = dict(_states(left)), dict(_states(right))
    return tuple(
        StateChange(*name, ours.get(name), theirs.get(name)) for name in sorted({*ours, *theirs})
    )


def _states(contents: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
    for operator in contents.get("operators", ()):
        for state in operator["states"]:
            yield (operator["uid"], state["name"]), state


def _shape(state: Mapping[str, Any] | None) -> str:
    if state is None:
        return ""
    columns = {**state["keys"], **state["values"]}
    return f"{state['kind']} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})"


def _check_there(savepoint: Savepoint) -> None:
    if savepoint.status not in DECIDABLE:
        status = savepoint.get_status_display().lower()
        msg = f"savepoint {savepoint.pk} cannot be looked into: it is {status}"
        raise conflict(msg)


def _asked(ask: Callable[[], T]) -> T:
    try:
        return ask()
    except EngineAway as error:
        raise Refused(502, "engine", error.message) from error
    except EngineError as error:
        raise conflict(error.message) from error
