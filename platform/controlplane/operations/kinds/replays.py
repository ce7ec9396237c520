"""Replay: start a version from a savepoint beside the live job, or end that again.

    start     upload → start → confirm       when it does not come up: withdraw → gone
    abandon   settle → cancel → end

Guarantee   The live job is not touched. Every sink of a replay writes beside its target. Of a
            replay that does not come up nothing stays behind on the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.access.errors import conflict
from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import Job, Run, RunState
from controlplane.operations.contract import (
    Context,
    Done,
    Kind,
    Outcome,
    Step,
    StepFailed,
    Superseded,
    Wait,
)
from controlplane.operations.kinds.deploy import adopt
from controlplane.operations.models import Operation
from controlplane.operations.steps import ending, starting
from controlplane.operations.steps.rows import conclude, replay_of, run_of, version_of
from controlplane.operations.steps.settling import settle
from controlplane.replay import lifecycle as replays
from controlplane.replay.limits import Limit
from controlplane.replay.models import HANDING_OVER
from controlplane.replay.outputs.handing import create_outputs
from controlplane.replay.outputs.targets import targets_of


def create_run(context: Context) -> None:
    """The replay's run exists from the moment that the engine has its artifact."""
    operation, replay = context.operation, replay_of(context.operation)
    run = runs.create_run(
        context.job,
        version_of(operation),
        context.derived_id("run"),
        context.now,
        parallelism=replay.parallelism,
        purpose=Run.Purpose.REPLAY,
        restored_from=replay.savepoint,
        dropped=list(operation.params.get("drop", ())),
        accepted_gaps=replay.accepted_gaps,
    )
    replay.run = run
    replay.save(update_fields=["run"])
    adopt(operation, run)


def confirm(context: Context) -> Outcome:
    """See it come up with every task, let it read at its pace, and ask for its sinks."""
    outcome = starting.confirm(context)
    if isinstance(outcome, Wait):
        return outcome
    engine_job_id = run_of(context.operation).engine_job_id
    limit = replay_of(context.operation).limit
    if limit != Limit() and outcome.found["state"] == "RUNNING":
        rows, times = limit.rows_per_second, limit.times_real_time
        context.engine.limit_reading(engine_job_id, rows, times)
    plan = context.engine.engine_plan(engine_job_id)
    return Done({**outcome.found, "engine_plan": dict(plan)})


def record_up(context: Context) -> None:
    """It replays."""
    starting.record_up(context)
    replay = replay_of(context.operation)
    create_outputs(replay, targets_of(context.operation.result.pop("engine_plan", {})))
    replays.started(replay, context.now)
    text = f"{replay} replays from savepoint {replay.savepoint_id}"
    conclude(context, text, f"/replays/{replay.pk}/")


def withdraw(context: Context) -> Outcome:
    """Take it back."""
    if "run" not in context.result:
        return Done({"ended": "CANCELED"})
    return ending.cancel(context)


def record_gone(context: Context) -> None:
    """Nothing of it is left on the engine."""
    if "run" in context.result:
        reason = context.operation.error
        runs.observe(run_of(context.operation), RunState.FAILED, context.now, failure=reason)


class StartReplay(Kind):
    """Start a replay."""

    name = "start_replay"
    steps = (
        Step("upload", "gives the engine the job file", starting.upload, create_run, builds=True),
        Step("start", "asks the engine to start the replay", starting.start, builds=True),
        Step("confirm", "waits for every task to run", confirm, record_up, 120.0),
    )
    recovery = (
        Step("withdraw", "takes the replay back", withdraw),
        Step("gone", "waits for it to be gone", ending.await_end, record_gone),
    )

    def scope(self, job: Job, params: Mapping[str, Any]) -> str:
        """A replay has nothing of the live job for itself."""
        return f"replay:{params['replay']}"

    def fail(self, context: Context, failure: StepFailed) -> None:
        """Say why there is no replay; one that was abandoned meanwhile ends as abandoned."""
        if not isinstance(failure, Superseded):
            replays.failed(replay_of(context.operation), str(failure), context.now)


def record_abandoned(context: Context) -> None:
    """It has ended."""
    replay = replay_of(context.operation)
    replays.abandoned(replay, context.now)
    if replay.run_id:
        ending.record_end(context)
    conclude(context, f"{replay} is abandoned", f"/replays/{replay.pk}/")


class AbandonReplay(Kind):
    """End a replay for good."""

    name = "abandon_replay"
    supersedes = True
    steps = (
        Step("settle", "waits for the replay's start to come to rest", settle, timeout_s=90.0),
        Step("cancel", "asks the engine to cancel the replay", withdraw),
        Step(
            "end",
            "waits for the replay to end",
            ending.await_end,
            record_abandoned,
            timeout_s=120.0,
        ),
    )

    def scope(self, job: Job, params: Mapping[str, Any]) -> str:
        """The same as its start, which it ends."""
        return f"replay:{params['replay']}"

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Only a replay that goes on can be abandoned."""
        replay = job.replays.get(pk=params["replay"])
        if replay.is_terminal:
            msg = f"{replay} has ended already ({replay.get_status_display().lower()})"
            raise conflict(msg)
        if replay.status in HANDING_OVER:
            msg = f"{replay} is {replay.get_status_display().lower()}: wait until that has ended"
            raise conflict(msg)

    def begin(self, operation: Operation, now: datetime) -> None:
        """It is about the replay's run, if there is one yet."""
        run = replay_of(operation).run
        if run is not None:
            operation.run = run
            operation.result |= {"run": run.pk}
