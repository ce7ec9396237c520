"""Replays."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from ninja import Field, Schema
from pydantic import AwareDatetime

from controlplane.api.schema.operations import OperationOut
from controlplane.replay.compared import ComparedOutput
from controlplane.replay.models import Replay
from controlplane.replay.sampling import percent_of
from controlplane.replay.tuning import Tuning


class ReplayOut(Schema):
    """A version run from a savepoint beside the live job."""

    id: int
    name: str
    job: str
    status: str
    savepoint: int
    version: int
    run: int | None
    parallelism: int
    event_time_start: datetime | None
    event_time_now: datetime | None
    live_event_time: datetime | None
    speed: float | None = Field(description="event seconds per second")
    until: datetime | None
    cut_at: datetime | None = Field(description="event time from which on its results count")
    discards: bool
    read_limit: float | None = Field(description="rows per second; null: none")
    speed_limit: float | None = Field(description="times real time; null: none")
    positions: dict[str, str]
    paused: bool
    percent: float | None = Field(description="of the way from the savepoint to the live job")
    eta_low: datetime | None
    eta_high: datetime | None
    note: str
    stalled: bool = Field(description="whether it does not catch up; note says why")
    failure: str
    stalled_since: datetime | None
    level_within_s: float | None = Field(
        description="event seconds behind the live job at which it is level; null: by its pace"
    )
    level_for_s: float = Field(description="of being level, after which it has caught up")
    level_since: datetime | None
    caught_up_at: datetime | None
    fell_behind_at: datetime | None
    fell_behind: str
    back_days: float
    back_until: datetime | None = Field(description="until then it can be rolled back")
    stood_still_ms: int | None = Field(description="no version ran for so long when promoted")
    created_at: datetime
    ended_at: datetime | None

    @staticmethod
    def resolve_job(replay: Replay) -> str:
        """Its name."""
        return replay.job.name

    @staticmethod
    def resolve_savepoint(replay: Replay) -> int:
        """Its id."""
        return replay.savepoint_id

    @staticmethod
    def resolve_version(replay: Replay) -> int:
        """Its number."""
        return replay.version.number

    @staticmethod
    def resolve_percent(replay: Replay) -> float | None:
        """When it was seen last."""
        return percent_of(replay)

    @staticmethod
    def resolve_stalled(replay: Replay) -> bool:
        """From its status and note."""
        return replay.is_stalled

    @staticmethod
    def resolve_run(replay: Replay) -> int | None:
        """Its id."""
        return replay.run_id


class ToleranceIn(Schema):
    """How far the numbers of a column may be apart and still count as equal."""

    output: str = Field(description="name or uid")
    column: str
    absolute: float | None = None
    relative: float | None = Field(None, description="a part of the old value")


class TuningIn(Schema):
    """When a replay has caught up, and how long it can be rolled back; what is left out stays."""

    level_within_s: float | Literal["pace"] | None = Field(
        None, description="event seconds behind the live job, or pace: what it covers in 5 s"
    )
    level_for_s: float | None = Field(None, description="seconds of being level")
    back_days: float | None = Field(None, description="after its promotion")

    def on(self, before: Tuning) -> Tuning:
        """Those that were, with what is given in their place. Raises Refused."""
        names = ("level_within_s", "level_for_s", "back_days")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        if given.get("level_within_s") == "pace":
            given["level_within_s"] = None
        return replace(before, **given)


class CloneIn(Schema):
    """What somebody agrees to."""

    drop: list[str] = Field([], description="state that may be left behind: uid or uid/state")
    accept_missing_input: list[str] = Field(
        [], description="sources that may go on without input which is not there any more: uid"
    )


class ReplayIn(CloneIn, TuningIn):
    """A replay to be started; terms that are left out are as they are by themselves."""

    savepoint: int = Field(ge=1, description="id")
    version: int = Field(ge=1, description="number")
    parallelism: int = Field(1, ge=1, le=128)
    until: AwareDatetime | None = Field(None, description="event time at which it ends")
    dry_run: bool = Field(False, description="its sinks write nothing")
    rows_per_second: float | None = Field(None, gt=0, description="that it reads; null: no limit")
    times_real_time: float | None = Field(None, gt=0, description="or how fast event time passes")
    positions: dict[str, str] = Field(
        {}, description="source uid to where it begins: earliest, or an ISO time"
    )


class ReplayStarted(Schema):
    """A new replay, and the operation that starts it."""

    replay: ReplayOut
    operation: OperationOut


class LimitIn(Schema):
    """How fast a replay may read."""

    rows_per_second: float | None = Field(None, gt=0, description="null: as fast as it can")
    times_real_time: float | None = Field(None, gt=0, description="or how fast event time passes")


class PauseIn(Schema):
    """Whether a replay reads nothing for now."""

    paused: bool


class PromoteIn(Schema):
    """Which results of the new version count."""

    at: AwareDatetime | Literal["soon"] | None = Field(
        None, description="those from this event time on, ahead of both; null: since the savepoint"
    )


class RestoreRowOut(Schema):
    """What becomes of one operator, or of one of its states."""

    uid: str
    name: str
    state: str | None
    outcome: str
    sentence: str
    rows: int


class PlanOut(Schema):
    """What a replay would restore."""

    ok: bool
    refusals: list[str]
    rows: list[RestoreRowOut]
    caught_up: str = Field(description="when it would have caught up, in words")
    can_go_back: str = Field(description="for how long after its promotion, in words")


class ConditionOut(Schema):
    """One thing that has to hold, or to be known."""

    title: str
    state: str = Field(description="met, open, or warn: hinders nothing")
    text: str
    todo: str = Field(description="what would meet it; empty: met, or nothing will")


class AnswerOut(Schema):
    """Whether something can be done."""

    ok: bool
    why_not: str = Field(description="one sentence; empty when it can be done")
    conditions: list[ConditionOut]


class ReadinessOut(Schema):
    """Whether a replay can be promoted, and rolled back."""

    promotion: AnswerOut
    rollback: AnswerOut
    expected_pause: str = Field(description="how long no version will run, and what says so")


class DifferenceOut(Schema):
    """Rows that differ in the same way."""

    id: int
    verdict: str
    fields: list[str]
    rows: int
    first_seen: datetime
    accepted_by: str | None
    example: str


class OutputOut(Schema):
    """One output, as far as it was compared."""

    name: str
    place: str
    beside: str
    why_not: str
    compared_to: datetime | None
    columns: list[str] = Field(description="of numbers, which may have a tolerance")
    tolerance: dict[str, dict[str, float]]
    compared: int
    equal: int
    changed: int
    only_old: int
    only_new: int
    differences: list[DifferenceOut]


def output_json(one: ComparedOutput) -> dict[str, Any]:
    """One output with its counts and differences."""
    output, counts = one.output, one.counts
    return {
        "name": output.name,
        "place": output.place,
        "beside": output.beside,
        "why_not": output.why_not,
        "compared_to": output.compared_to,
        "columns": output.columns,
        "tolerance": output.tolerance,
        "compared": counts.compared,
        "equal": counts.equal,
        "changed": counts.changed,
        "only_old": counts.only_old,
        "only_new": counts.only_new,
        "differences": [
            {
                "id": each.pk,
                "verdict": each.verdict,
                "fields": each.fields,
                "rows": each.rows,
                "first_seen": each.first_seen,
                "accepted_by": each.accepted_by and each.accepted_by.get_username(),
                "example": _example(each.examples),
            }
            for each in one.differences
        ],
    }


def _example(examples: list[dict[str, Any]]) -> str:
    if not examples:
        return ""
    first = examples[0]
    return f"{first['keys']}: {' '.join(first['old']) or '–'} → {' '.join(first['new']) or '–'}"
