"""Promote a replay: its version takes the place of the live one, with what it has corrected.

    promote    upload → ready → trigger → savepoint → manifest → old_end →
               stop_replay → replay_savepoint → replay_end → swap → start → confirm
    recovery   look → withdraw → gone → restore → upload_old → start_old → confirm_old

Guarantee   At no moment do two runs write to the targets: a run is started when the one before was
            seen to end. A promotion that fails leaves the old version running, with its outputs as
            they were; if that fails too the operation says that no version runs, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import Job, RunState
from controlplane.moments import epoch_ms
from controlplane.operations.contract import (
    Context,
    Done,
    Kind,
    Outcome,
    Step,
    StepFailed,
    Wait,
)
from controlplane.operations.kinds.savepoint import READY, TAKE, begin_savepoint
from controlplane.operations.models import Operation
from controlplane.operations.steps import ending, handover, snapshotting, starting
from controlplane.operations.steps.rows import (
    conclude,
    old_run_of,
    replay_of,
    run_of,
    savepoint_of,
)
from controlplane.replay import lifecycle as replays
from controlplane.replay.readiness import promotion
from controlplane.snapshots.models import Savepoint

BEFORE_ANYTHING = ("upload", "ready")
"""A failure there has stopped nothing."""


def record_old_end(context: Context) -> None:
    """The old version has ended, and the clock of the pause runs."""
    ending.forget_end(context)
    operation = context.operation
    operation.result |= {"still_since_ms": epoch_ms(context.now)}
    operation.save(update_fields=["result"])


def record_replays_end(context: Context) -> None:
    """Nothing writes now: the new version's run may be made."""
    handover.record_replays_end(context)
    handover.create_new_run(context)


def record_promoted(context: Context) -> None:
    """The new version is the live one."""
    starting.record_up(context)
    operation, replay = context.operation, replay_of(context.operation)
    still_ms = (epoch_ms(context.now) or 0) - operation.result["still_since_ms"]
    run = run_of(operation)
    replays.promoted(
        replay,
        context.now,
        old_run=old_run_of(operation),
        old_savepoint=savepoint_of(operation),
        new_run=run,
        still_ms=still_ms,
    )
    text = (
        f"{context.job.name} runs version {run.version.number}, promoted from {replay.name}; "
        f"no version ran for {still_ms / 1000:.1f} s"
    )
    conclude(context, text, f"/replays/{replay.pk}/")


def look(context: Context) -> Outcome:
    """See whether the old version still runs, once it is certain that it will not stop later; one
    that has ended by itself is started again as any other job.
    """
    run = old_run_of(context.operation)
    job = context.engine.job(run.engine_job_id)
    if not job.has_ended:
        if job.is_up and not snapshotting.may_still_stop(context):
            return Done({"old_lives": True})
        return Wait(f"{starting.waiting_text(job)}; waits until it is clear whether it stops")
    if savepoint_of(context.operation).status == Savepoint.Status.COMPLETED:
        return Done({"old_lives": False})
    try:
        outcome = snapshotting.await_savepoint(context)
    except StepFailed:  # it has ended, and not because it was asked to
        return Done({"old_lives": True, "ended_alone": job.state, "why": job.failure})
    if isinstance(outcome, Wait):
        return outcome
    context.operation.result |= dict(outcome.found)
    manifest = snapshotting.read_manifest(context)
    return Done({**outcome.found, **manifest.found, "old_lives": False})


def record_look(context: Context) -> None:
    """What was found of its savepoint belongs into the catalogue."""
    operation, old = context.operation, old_run_of(context.operation)
    if state := operation.result.get("ended_alone"):
        runs.observe(old, state, context.now, failure=operation.result["why"])
        operation.error += (
            f"; no version of {context.job.name} runs: version {old.version.number} ended by "
            f"itself ({state}), and goes on from its last checkpoint when it is started again"
        )
        operation.save(update_fields=["error"])
    if operation.result["old_lives"]:
        return
    if "summary" in operation.result:
        snapshotting.record_savepoint(context)
    runs.observe(old, RunState.FINISHED, context.now)


def stopped(operation: Operation) -> bool:
    """Whether the old version has stopped, so that it has to be started again."""
    return not operation.result.get("old_lives")


def begun(operation: Operation) -> bool:
    """Whether there is a run of the new version."""
    return "run" in operation.result


def await_withdrawn(context: Context) -> Outcome:
    """See it gone."""
    if "ended" in context.result or not begun(context.operation):
        return Done()
    return ending.await_end_of(context, run_of(context.operation))


def record_withdrawn(context: Context) -> None:
    """The new version's run has ended; one of the old version takes its place."""
    operation = context.operation
    if begun(operation):
        state = RunState.FAILED if operation.error else RunState.CANCELED
        runs.observe(run_of(operation), state, context.now, failure=operation.error)
        operation.result["new_run"] = operation.result["run"]
    handover.create_old_run(context)


START_OLD = (
    Step(
        "upload_old",
        "gives the engine the old job file",
        starting.upload_run,
        builds=True,
        when=stopped,
    ),
    Step(
        "start_old",
        "asks the engine to start the old version",
        starting.start,
        builds=True,
        when=stopped,
    ),
)
CONFIRM_OLD = Step(
    "confirm_old",
    "waits for every task of the old version to run",
    starting.confirm,
    starting.record_up,
    timeout_s=120.0,
    when=stopped,
)
BACK = (
    Step(
        "gone",
        "waits for the new version to end",
        await_withdrawn,
        record_withdrawn,
        timeout_s=120.0,
        when=stopped,
    ),
    Step("restore", "puts the old outputs back", handover.restore_outputs, when=stopped),
    *START_OLD,
)


def replay_stops(record_end: Callable[[Context], None]) -> tuple[Step, ...]:
    """The replay stops with a savepoint; `record_end`: what is noted when it has ended."""
    return (
        Step("stop_replay", "asks the replay to stop with a savepoint", handover.stop_replay),
        Step(
            "replay_savepoint",
            "waits for every task of the replay to write its part",
            handover.await_replays_savepoint,
            handover.record_replays_savepoint,
            timeout_s=120.0,
        ),
        Step(
            "replay_end",
            "waits for the replay to end",
            handover.await_replays_end,
            record_end,
            timeout_s=120.0,
        ),
    )


class PromoteReplay(Kind):
    """Let a replay's version take the place of the live one."""

    name = "promote_replay"
    steps: Sequence[Step] = (
        Step("upload", "gives the engine the job file", starting.upload, builds=True),
        READY,
        Step("trigger", "asks the old version to stop with a savepoint", snapshotting.trigger_stop),
        *TAKE,
        Step("old_end", "waits for the old version to end", ending.await_end, record_old_end, 120),
        *replay_stops(record_replays_end),
        Step("swap", "puts the new outputs in place of the old", handover.swap_outputs),
        Step("start", "asks the engine to start the new version", starting.start, builds=True),
        Step("confirm", "waits for every task to run", starting.confirm, record_promoted, 120.0),
    )
    recovery: Sequence[Step] = (
        Step("look", "looks whether the old version runs", look, record_look, 120.0),
        Step("withdraw", "takes the new version back", ending.cancel, when=begun),
        *BACK,
        CONFIRM_OLD,
    )

    settled = frozenset(step.name for step in steps if step.name not in BEFORE_ANYTHING)

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Only a replay that meets every condition."""
        promotion(job.replays.get(pk=params["replay"])).require()

    def begin(self, operation: Operation, now: datetime) -> None:
        """Put the old version's savepoint into the catalogue."""
        begin_savepoint(operation, Savepoint.Origin.UPGRADE)
        operation.result |= {"stops": True, "old_run": operation.result.pop("run")}
        at = operation.params.get("at")
        replays.cutting_over(replay_of(operation), at and datetime.fromisoformat(at))

    def must_recover(self, operation: Operation, failure: StepFailed) -> bool:
        """From the moment on that the old version was asked to stop."""
        return operation.step not in BEFORE_ANYTHING

    def not_recovered(self, operation: Operation, failure: StepFailed) -> str:
        """Say that the old version has to be started by hand, and from where."""
        old, savepoint = old_run_of(operation), savepoint_of(operation)
        return (
            f"{super().not_recovered(operation, failure)}; no version of {operation.job.name} is "
            f"known to run: unless one does, start version {old.version.number} from "
            f"savepoint {savepoint.pk}"
        )

    def fail(self, context: Context, failure: StepFailed) -> None:
        """Say what runs; a replay that still runs can be promoted again."""
        snapshotting.fail_savepoint(context, failure)
        runs.want(context.job, Job.Desired.RUNNING)
        replays.not_promoted(replay_of(context.operation), str(failure), context.now)
        ending.end_unstarted(context, failure)
