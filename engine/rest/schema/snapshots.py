"""Of snapshots: what is in one, what two differ in, and what a start from one would restore."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from engine.rest.schema.jobs import OperationState, Throwable
from engine.rest.schema.running import EnginePlan


class Column(TypedDict):
    """A column and its Polars type."""

    name: str
    type: str


class StateRows(TypedDict):
    """Rows of a state: bytes as hex, times ISO 8601, durations in seconds."""

    columns: list[Column]
    rows: list[list[object]]
    truncated: bool


class StateValue(StateRows):
    """What one key has in one state."""

    operator: str
    state: str
    kind: str
    found: bool


class ReadBody(TypedDict):
    """Which rows of a snapshot; a query sees the table `state`."""

    path: str
    operator: str
    state: str
    key: NotRequired[dict[str, str | float | bool] | None]
    sql: NotRequired[str | None]
    limit: NotRequired[int | None]


class PathBody(TypedDict):
    """A snapshot."""

    path: str
    triggerId: NotRequired[str | None]


class CompareBody(TypedDict):
    """Two snapshots, and how many rows of each state to show."""

    left: str
    right: str
    examples: NotRequired[int | None]
    triggerId: NotRequired[str | None]


class Done(TypedDict):
    """Bytes of a verification, rows of a comparison."""

    done: int
    total: int


Verified = TypedDict(
    "Verified",
    {
        "whole": NotRequired[bool],
        "files": NotRequired[int],
        "size_bytes": NotRequired[int],
        "problems": NotRequired[list[str]],
        "failure-cause": NotRequired[Throwable],
    },
)


class Verification(TypedDict):
    """Where a verification stands."""

    status: OperationState
    progress: Done
    operation: Verified | None


class StateDifference(TypedDict):
    """Numbers are rows."""

    operator: str
    state: str
    equal: int
    changed: int
    only_left: int
    only_right: int
    reason: str
    examples: list[dict[str, object]]


class Place(TypedDict):
    """Where a split of a source goes on; a watermark of null is not known yet."""

    position: object
    watermark: int | None
    idle: bool
    finished: bool
    generator: NotRequired[object]


class SplitDifference(TypedDict):
    """A split whose place differs; null is not there."""

    operator: str
    split: str
    left: Place | None
    right: Place | None


Compared = TypedDict(
    "Compared",
    {
        "equal": NotRequired[bool],
        "states": NotRequired[list[StateDifference]],
        "splits": NotRequired[list[SplitDifference]],
        "failure-cause": NotRequired[Throwable],
    },
)


class Comparison(TypedDict):
    """Where a comparison stands."""

    status: OperationState
    progress: Done
    operation: Compared | None


class Savepoint(TypedDict):
    """What a snapshot holds: `docs/snapshots.md` tells what is in a manifest."""

    path: str
    size_bytes: int
    manifest: dict[str, object]


class PreflightRow(TypedDict):
    """What becomes of an operator, or of one of its states."""

    uid: str
    name: str
    state: str | None
    outcome: str
    reason: str
    sentence: str
    stored: str
    wanted: str
    rows: int
    size_bytes: int
    allowed: bool


class SourceInput(TypedDict):
    """What a source has no more of the input that it would go on with, and of how much it knows."""

    uid: str
    gone: list[str]
    unknown: int


class Preflight(TypedDict):
    """What a start from a snapshot would restore."""

    ok: bool
    rows: list[PreflightRow]
    inputs: list[SourceInput]
    warnings: list[str]
    savepoint: Savepoint
    plan: EnginePlan
