"""Replays: listing, starting, comparing, promoting, rolling back and abandoning them."""

from __future__ import annotations

from typing import Any

from ninja import Query, Router, Status

from controlplane.access.errors import not_found
from controlplane.access.lookup import (
    difference_for,
    job_for,
    replay_for,
    require,
    savepoint_for,
    version_for,
    visible_jobs,
)
from controlplane.access.models import Role
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.operations import OperationOut
from controlplane.api.schema.replays import (
    CloneIn,
    LimitIn,
    OutputOut,
    PauseIn,
    PlanOut,
    PromoteIn,
    ReadinessOut,
    ReplayIn,
    ReplayOut,
    ReplayStarted,
    ToleranceIn,
    TuningIn,
    output_json,
)
from controlplane.operations.models import Operation
from controlplane.replay import actions
from controlplane.replay.catching_up import back_text, rule_text
from controlplane.replay.compared import comparison_of
from controlplane.replay.limits import Limit as Pace
from controlplane.replay.models import Replay
from controlplane.replay.pausing import expected_pause
from controlplane.replay.preflight import preflight
from controlplane.replay.readiness import Answer, promotion, rollback
from controlplane.replay.tolerances import ABSOLUTE, RELATIVE, set_tolerance
from controlplane.replay.tuning import tune_replay, tuning_of

router = Router(tags=["replays"])


@router.get("replays", response=Page[ReplayOut], summary="List replays")
def list_replays(
    request: ApiRequest, job: str = "", limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """Newest first; with `job`, those of one job."""
    found = Replay.objects.select_related("job", "version")
    if job:
        found = found.filter(job=job_for(request.auth, job))
    else:
        found = found.filter(job__in=visible_jobs(request.auth))
    return page(found, list, limit, cursor, "-id")


@router.post("jobs/{name}/replays", response={202: ReplayStarted}, summary="Start a replay")
def start(request: ApiRequest, name: str, body: ReplayIn) -> Status[dict[str, Any]]:
    """Run a version from a savepoint beside the live job. Operator."""
    job, user = job_for(request.auth, name), request.auth
    savepoint = savepoint_for(user, body.savepoint)
    if savepoint.job_id != job.pk:
        raise not_found(what="savepoint", name=f"{savepoint.pk} of {job.name}")
    replay, operation = actions.start_replay(
        savepoint,
        version_for(job, body.version),
        user,
        parallelism=body.parallelism,
        until=body.until,
        discards=body.dry_run,
        limit=Pace(body.rows_per_second, body.times_real_time),
        drop=body.drop,
        accept_missing=body.accept_missing_input,
        positions=body.positions,
        tuning=body.on(actions.AS_EVER),
    )
    return Status(202, {"replay": replay, "operation": operation})


@router.get("replays/{replay_id}", response=ReplayOut, summary="One replay")
def one_replay(request: ApiRequest, replay_id: int) -> Replay:
    """How far it is."""
    return replay_for(request.auth, replay_id)


@router.post("replays/{replay_id}/abandon", response={202: OperationOut}, summary="Abandon")
def abandon(request: ApiRequest, replay_id: int) -> Status[Operation]:
    """End a replay; the live job is not touched. Operator."""
    replay = replay_for(request.auth, replay_id)
    return Status(202, actions.abandon_replay(replay, request.auth))


@router.post("replays/{replay_id}/clone", response={202: ReplayStarted}, summary="Clone")
def clone(request: ApiRequest, replay_id: int, body: CloneIn) -> Status[dict[str, Any]]:
    """Start another one with the same plan; consent to losses is given anew. Operator."""
    replay, operation = actions.clone_replay(
        replay_for(request.auth, replay_id), request.auth, body.drop, body.accept_missing_input
    )
    return Status(202, {"replay": replay, "operation": operation})


@router.get("jobs/{name}/replays/plan", response=PlanOut, summary="What a replay would restore")
def plan(
    request: ApiRequest,
    name: str,
    savepoint: int,
    version: int,
    terms: Query[TuningIn],
    parallelism: int = 1,
) -> dict[str, Any]:
    """Asked of the engine; nothing is started. Operator."""
    job = job_for(request.auth, name)
    require(request.auth, job, Role.OPERATOR)
    chosen = savepoint_for(request.auth, savepoint)
    tuning = terms.on(actions.AS_EVER)
    found = preflight(chosen, version_for(job, version), parallelism)
    return {
        "ok": found.ok,
        "refusals": list(found.refusals),
        "rows": list(found.rows),
        "caught_up": rule_text(tuning),
        "can_go_back": back_text(tuning),
    }


@router.get("replays/{replay_id}/comparison", response=list[OutputOut], summary="Old and new")
def compared(request: ApiRequest, replay_id: int) -> list[dict[str, Any]]:
    """What has been compared of each output, and the kinds of differences."""
    comparison = comparison_of(replay_for(request.auth, replay_id))
    return [output_json(one) for one in comparison.outputs]


@router.post("replays/{replay_id}/differences/{difference_id}/accept", summary="Accept")
def accept(request: ApiRequest, replay_id: int, difference_id: int) -> dict[str, int]:
    """Say that the new version intends these differences; how many kinds are left. Operator."""
    replay = replay_for(request.auth, replay_id)
    actions.accept_difference(difference_for(replay, difference_id), request.auth)
    return {"open": comparison_of(replay).open_differences}


@router.post("replays/{replay_id}/limit", response=ReplayOut, summary="Throttle")
def throttle(request: ApiRequest, replay_id: int, body: LimitIn) -> Replay:
    """Let it read at most so fast; null: as fast as it can. Operator."""
    replay = replay_for(request.auth, replay_id)
    limit = Pace(body.rows_per_second, body.times_real_time)
    actions.limit_replay(replay, request.auth, limit)
    return replay


@router.post("replays/{replay_id}/tuning", response=ReplayOut, summary="Caught up, roll back")
def tune(request: ApiRequest, replay_id: int, body: TuningIn) -> Replay:
    """Change when it has caught up, and how long it can be rolled back. Operator."""
    replay = replay_for(request.auth, replay_id)
    tune_replay(replay, request.auth, body.on(tuning_of(replay)))
    replay.refresh_from_db()
    return replay


@router.post("replays/{replay_id}/tolerance", response=list[OutputOut], summary="Tolerance")
def tolerate(request: ApiRequest, replay_id: int, body: ToleranceIn) -> list[dict[str, Any]]:
    """Change how far numbers may be apart; neither value: they must be equal. Operator."""
    replay = replay_for(request.auth, replay_id)
    how = RELATIVE if body.relative is not None else ABSOLUTE
    value = body.absolute if body.relative is None else body.relative
    set_tolerance(replay, request.auth, body.output, body.column, how, value)
    return compared(request, replay_id)


@router.post("replays/{replay_id}/pause", response=ReplayOut, summary="Pause, or go on")
def pause(request: ApiRequest, replay_id: int, body: PauseIn) -> Replay:
    """Let it read nothing for now, or go on at its limit. Operator."""
    replay = replay_for(request.auth, replay_id)
    actions.pause_replay(replay, request.auth, paused=body.paused)
    return replay


@router.get("replays/{replay_id}/readiness", response=ReadinessOut, summary="Can it be promoted")
def ready(request: ApiRequest, replay_id: int) -> dict[str, Answer | str]:
    """Whether it can be promoted, and rolled back: every condition, and what would meet it."""
    replay = replay_for(request.auth, replay_id)
    pause = expected_pause(replay).text
    return {
        "promotion": promotion(replay),
        "rollback": rollback(replay),
        "expected_pause": pause,
    }


@router.post("replays/{replay_id}/promote", response={202: OperationOut}, summary="Promote")
def promote(
    request: ApiRequest, replay_id: int, body: PromoteIn | None = None
) -> Status[Operation]:
    """Let its version take the place of the live one. Operator."""
    replay, at = replay_for(request.auth, replay_id), None if body is None else body.at
    return Status(202, actions.promote_replay(replay, request.auth, at=at))


@router.post("replays/{replay_id}/rollback", response={202: OperationOut}, summary="Roll back")
def roll_back(request: ApiRequest, replay_id: int) -> Status[Operation]:
    """Let the version before take its place again, with its outputs. Operator."""
    replay = replay_for(request.auth, replay_id)
    return Status(202, actions.rollback_replay(replay, request.auth))
