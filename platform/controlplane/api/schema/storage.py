"""What lies where savepoints are kept, what is in one, and what rules would do with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ninja import Field, Schema

from controlplane.api.schema.snapshots import SavepointOut
from controlplane.snapshots.catalogue import CatalogueRow, Storage


class CatalogueOut(Schema):
    """One savepoint, with what is known of its files and what becomes of it."""

    savepoint: SavepointOut
    health: str = Field(description="whole, damaged, unreadable, missing or unverified")
    usable: bool = Field(description="whether a job can be started from it")
    uses: list[str] = Field(description="what uses it, and why it must stay")
    keep: bool | None = Field(description="what retention says; null: it is not about this one")
    reason: str = Field(description="of retention, for keeping or deleting it")

    @staticmethod
    def resolve_uses(row: CatalogueRow) -> list[str]:
        """In a few words each."""
        return [f"{use.name}: {use.need}" if use.need else use.name for use in row.uses]

    @staticmethod
    def resolve_keep(row: CatalogueRow) -> bool | None:
        """Whether it stays."""
        return row.verdict.keep if row.verdict else None

    @staticmethod
    def resolve_reason(row: CatalogueRow) -> str:
        """Why."""
        return row.verdict.reason if row.verdict else ""


class VerdictOut(Schema):
    """What rules would do with one savepoint, and why."""

    savepoint: int = Field(alias="savepoint.pk")
    label: str = Field(alias="savepoint.label")
    size_bytes: int | None = Field(alias="savepoint.size_bytes")
    keep: bool = Field(alias="verdict.keep")
    reason: str = Field(alias="verdict.reason")


class ScanOut(Schema):
    """The last look at where a job's cluster keeps savepoints."""

    at: datetime | None = Field(description="null: nobody has looked yet")
    folders: int
    problem: str = Field(description="why they could not be listed; what was found before stands")
    missing: list[int] = Field(description="savepoints of the job whose files are gone")

    @classmethod
    def of(cls, found: Storage) -> ScanOut:
        """What is known."""
        scan = found.scan
        return cls(
            at=scan.at if scan else None,
            folders=scan.folders if scan else 0,
            problem=scan.problem if scan else "",
            missing=[one.pk for one in found.missing],
        )


class StrayOut(Schema):
    """Files of a savepoint that no row is about."""

    id: int
    location: str
    is_complete: bool = Field(description="a whole savepoint: import it, or delete it as one")
    size_bytes: int
    changed_at: datetime
    found_at: datetime


class RowsOut(Schema):
    """Some rows of one state."""

    columns: Mapping[str, str] = Field(description="name to type")
    rows: Sequence[Sequence[Any]]
    truncated: bool = Field(description="there are more")


class StateChangeOut(Schema):
    """One state of two savepoints."""

    uid: str
    state: str
    outcome: str = Field(description="added, removed, reshaped, resized or same")
    left: Mapping[str, Any] | None
    right: Mapping[str, Any] | None


class StateDeltaOut(Schema):
    """Rows of one state that are equal, changed, or only on one side."""

    uid: str
    state: str
    equal: int
    changed: int
    only_left: int
    only_right: int
    reason: str = Field(description="why rows could not be compared one by one")
    examples: Sequence[Mapping[str, Any]]


class ComparisonOut(Schema):
    """Where the comparison of rows stands; ask again until it has finished."""

    finished: bool
    done: int = Field(description="rows")
    total: int
    states: Sequence[StateDeltaOut]
    moved_splits: int = Field(description="splits of sources whose place differs")
    failure: str


class DiffOut(Schema):
    """In what the right savepoint differs from the left one."""

    left: int
    right: int
    changes: Sequence[StateChangeOut]
    rows: ComparisonOut
