"""Answers that only our engine gives: progress in event time, savepoints, preflights.

Units    event times are int64 microseconds UTC; None is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SourceState:
    """How far one source operator is."""

    uid: str
    name: str
    vertex_id: str
    watermark_us: int | None
    newest_us: int | None
    pending_rows: int | None
    """Rows that it could read at once; 0 is caught up."""
    idle: bool
    finished: bool

    @classmethod
    def of(cls, body: JsonObject) -> SourceState:
        """Read an entry of `sources`."""
        return cls(
            uid=body["uid"],
            name=body["name"],
            vertex_id=body["vertex"],
            watermark_us=body["watermark_us"],
            newest_us=body["newest_us"],
            pending_rows=body["pending_rows"],
            idle=body["idle"],
            finished=body["finished"],
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is in event time."""

    at_ms: int
    event_time_us: int | None
    """Everything before is done; the largest int64 after the end of input."""
    pending_rows: int | None
    """Over all sources; None when one does not know."""
    sources: tuple[SourceState, ...]

    @classmethod
    def of(cls, body: JsonObject) -> Progress:
        """Read `/headwater/jobs/:id/progress`."""
        sources = tuple(SourceState.of(source) for source in body["sources"])
        return cls(body["at_ms"], body["event_time_us"], body["pending_rows"], sources)


@dataclass(frozen=True, slots=True)
class SavepointSummary:
    """What a snapshot holds, from its manifest."""

    path: str
    job_id: str
    job_name: str
    checkpoint_id: int
    kind: str
    """checkpoint or savepoint."""
    created_ms: int
    size_bytes: int
    event_time_us: int | None
    source_positions: Mapping[str, Mapping[str, object]]
    """By operator uid, then by split: the position where reading goes on."""
    manifest: Mapping[str, Any]

    @classmethod
    def of(cls, body: JsonObject) -> SavepointSummary:
        """Read `/headwater/savepoints`."""
        manifest = body["manifest"]
        positions = {
            operator["uid"]: {name: split["position"] for name, split in splits.items()}
            for operator in manifest["operators"]
            if (splits := operator["splits"])
        }
        return cls(
            path=body["path"],
            job_id=manifest["job_id"],
            job_name=manifest["job_name"],
            checkpoint_id=manifest["checkpoint_id"],
            kind=manifest["kind"],
            created_ms=manifest["created_ms"],
            size_bytes=body["size_bytes"],
            event_time_us=manifest["event_time"]["min_watermark"],
            source_positions=positions,
            manifest=manifest,
        )


@dataclass(frozen=True, slots=True)
class PreflightRow:
    """What would become of one operator, or of one of its states."""

    uid: str
    name: str
    state: str | None
    """None is the operator itself: its splits or its staged output."""
    outcome: str
    """restored, migrates, new, dropped, incompatible or missing_input."""
    reason: str
    """Why, without saying of what; empty when there is nothing to say."""
    sentence: str
    """What, why, and what to do."""
    stored: str
    """Shape in the snapshot; empty when it has none."""
    wanted: str
    rows: int
    """Rows of state in the snapshot."""
    size_bytes: int
    allowed: bool
    """Whether the start may go on in spite of this row."""

    @classmethod
    def of(cls, body: JsonObject) -> PreflightRow:
        """Read an entry of `rows`."""
        return cls(
            uid=body["uid"],
            name=body["name"],
            state=body["state"],
            outcome=body["outcome"],
            reason=body["reason"],
            sentence=body["sentence"],
            stored=body["stored"],
            wanted=body["wanted"],
            rows=body["rows"],
            size_bytes=body["size_bytes"],
            allowed=body["allowed"],
        )


@dataclass(frozen=True, slots=True)
class SourceInput:
    """What one source has of the input that it would go on with."""

    uid: str
    gone: tuple[str, ...]
    """What is not there any more, split by split; of many the first ones."""
    unknown: int
    """Splits of which it cannot tell."""

    @classmethod
    def of(cls, body: JsonObject) -> SourceInput:
        """Read an entry of `inputs`."""
        return cls(body["uid"], tuple(body["gone"]), body["unknown"])


@dataclass(frozen=True, slots=True)
class PreflightReport:
    """Whether a program would start from a snapshot, operator by operator."""

    ok: bool
    rows: tuple[PreflightRow, ...]
    warnings: tuple[str, ...]
    inputs: tuple[SourceInput, ...]
    savepoint: SavepointSummary
    plan: Mapping[str, Any]
    """The program's plan in our engine's own form."""

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why it would not start, one sentence each."""
        return tuple(row.sentence for row in self.rows if not row.allowed)

    @classmethod
    def of(cls, body: JsonObject) -> PreflightReport:
        """Read the answer of `/headwater/preflight`."""
        return cls(
            ok=body["ok"],
            rows=tuple(PreflightRow.of(row) for row in body["rows"]),
            warnings=tuple(body["warnings"]),
            inputs=tuple(map(SourceInput.of, body["inputs"])),
            savepoint=SavepointSummary.of(body["savepoint"]),
            plan=body["plan"],
        )
