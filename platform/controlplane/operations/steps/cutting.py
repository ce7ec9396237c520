"""Steps of a cut over at an event time T: one run writes windows up to it, another from it on.

    until   the old version from where it stopped; it ends by itself when it has written up to T
    after   the new version from where its replay stopped; it writes from T on

When that fails, both are taken back, and the old version goes on alone:

    until had ended          from where it stopped first, and writes from T on
    until had not            from its last checkpoint
    it had ended splits      from where it stopped first: what it wrote since gives way

Guarantee   Each window is written by one of the runs, whichever of them fails, and when.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from controlplane.backends.contract import SavepointSummary
from controlplane.backends.errors import NoSnapshot
from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import Run, RunState
from controlplane.jobs.restorable import restorable
from controlplane.moments import epoch_ms
from controlplane.operations.contract import Context, Done, Outcome, StepFailed, Wait
from controlplane.operations.kinds.deploy import adopt
from controlplane.operations.models import Operation
from controlplane.operations.steps import ending, handover, snapshotting, starting
from controlplane.operations.steps.rows import (
    Source,
    old_run_of,
    replay_of,
    run_named,
    savepoint_of,
)
from controlplane.replay import cutting
from controlplane.replay.models import ReplayOutput
from controlplane.replay.outputs.targets import targets_of

UNTIL, AFTER = "until_run", "after_run"


def cut_of(operation: Operation) -> datetime:
    """The event time at which it cuts."""
    return datetime.fromisoformat(operation.params["at"])


def check_outputs(context: Context) -> Outcome:
    """See that every output can be cut at T, and that the old version will get there."""
    at = cut_of(context.operation)
    plan = context.engine.engine_plan(handover.replay_run_of(context).engine_job_id)
    targets = targets_of(plan)
    _refuse(cutting.why_not_cut(targets))
    with suppress(NoSnapshot):  # there is none yet, or a newer one just took its place
        newest = context.engine.newest_snapshot(old_run_of(context.operation).engine_job_id)
        if newest:
            _refuse_old(context, context.engine.savepoint(newest))
    points = cutting.first_points(targets, at)
    return Done({"points_from": {uid: time.isoformat() for uid, time in points.items()}})


def record_outputs(context: Context) -> None:
    """Keep which points will be the new version's."""
    outputs = ReplayOutput.objects.filter(replay=replay_of(context.operation))
    outputs.update(new_from=None)
    for uid, time in context.result["points_from"].items():
        outputs.filter(uid=uid).update(new_from=datetime.fromisoformat(time))


def check_old(context: Context) -> Outcome:
    """See that T is ahead of where the old version stopped."""
    _refuse_old(context, snapshotting.summary_from(context.result["summary"]))
    return Done()


def create_until_run(context: Context) -> None:
    """The old version goes on up to T."""
    operation, at = context.operation, cut_of(context.operation)
    source = Source.of(savepoint_of(operation))
    reason = f"started again from {source}, to write up to {cutting.text_of(at)}"
    run = handover.create_run_of_old(context, "until", source, reason, {"written_until": at})
    _adopt(operation, UNTIL, run)


def record_until_up(context: Context) -> None:
    """The old version runs again: the pause is over."""
    starting.record_up(context)
    result = context.operation.result
    result["still_ms"] = (epoch_ms(context.now) or 0) - result["still_since_ms"]
    context.operation.save(update_fields=["result"])


def check_new(context: Context) -> Outcome:
    """See that T is ahead of where the replay stopped."""
    summary = snapshotting.summary_from(context.result["new_summary"])
    _refuse(cutting.why_passed(summary, cut_of(context.operation), "the replay"))
    return Done()


def create_after_run(context: Context) -> None:
    """The new version writes from T on, beside the live run until that has ended."""
    operation = context.operation
    span: handover.Span = {"written_from": cut_of(operation)}
    handover.create_new_run(context, Run.Purpose.REPLAY, span)
    _adopt(operation, AFTER, run_named(operation, "run"))


def reach(context: Context) -> Outcome:
    """See the old version end at T, and the new one run."""
    until, after = run_named(context.operation, UNTIL), run_named(context.operation, AFTER)
    old = context.engine.job(until.engine_job_id)
    new = context.engine.job(after.engine_job_id)
    for run, job in ((until, old), (after, new)):
        if job.state in {"FAILED", "CANCELED"}:
            reason = f": {job.failure}" if job.failure else ""
            msg = f"version {run.version.number} ended ({job.state}) before it was over{reason}"
            raise StepFailed(msg)
    if not old.has_ended:
        number, at = until.version.number, cutting.text_of(cut_of(context.operation))
        return Wait(f"version {number} writes up to {at}; a split that gives no rows holds it up")
    if not (new.is_up or new.has_ended):
        return Wait(starting.waiting_text(new))
    return Done({"state": new.state, "plan": dict(new.plan)})


def record_reached(context: Context) -> None:
    """The new version's run is the live one."""
    operation = context.operation
    runs.observe(run_named(operation, UNTIL), RunState.FINISHED, context.now)
    runs.take_over(run_named(operation, AFTER))
    starting.record_up(context)


def begun(operation: Operation) -> bool:
    """Whether a run was made that recovery takes back."""
    return UNTIL in operation.result


def withdraw(context: Context) -> Outcome:
    """Ask the engine to cancel both."""
    for run in _made(context.operation):
        ending.cancel_run(context, run)
    return Done()


def await_gone(context: Context) -> Outcome:
    """See both gone."""
    ends = {}
    for run in _made(context.operation):
        outcome = ending.await_end_of(context, run)
        if isinstance(outcome, Wait):
            return outcome
        ends[str(run.pk)] = dict(outcome.found)
    return Done({"ends": ends})


def record_gone(context: Context) -> None:
    """Note how each ended; one that the engine never had has failed with the promotion."""
    for run in _made(context.operation):
        end = context.result["ends"][str(run.pk)]
        state, reason = end["ended"], end.get("end_reason", "")
        if run.state == RunState.INITIALIZING and state == RunState.LOST:
            state, reason = RunState.FAILED, context.operation.error
        runs.observe(run, state, context.now, failure=reason)


def find_again(context: Context) -> Outcome:
    """Find where the old version goes on, and what it need not write again."""
    operation = context.operation
    stopped_at = savepoint_of(operation)
    if not begun(operation):
        return Done({"again": {"savepoint": stopped_at.pk}})
    until = run_named(operation, UNTIL)
    if context.result["ends"][str(until.pk)]["ended"] == RunState.FINISHED:
        return Done({"again": {"savepoint": stopped_at.pk, "from": operation.params["at"]}})
    path = restorable(until, context.engine).path
    if path in ("", stopped_at.location):
        return Done({"again": {"savepoint": stopped_at.pk}})
    before = context.engine.savepoint(stopped_at.location)
    if cutting.has_ended_splits(context.engine.savepoint(path), before):
        return Done({"again": {"savepoint": stopped_at.pk, "doubled": True}})
    return Done({"again": {"path": path}})


def record_again(context: Context) -> None:
    """A run of the old version takes its place again."""
    operation = context.operation
    again = operation.result["again"]
    source = Source.of(savepoint_of(operation)) if "savepoint" in again else Source(**again)
    if again.get("doubled"):
        operation.error += _doubled(context)
        operation.save(update_fields=["error"])
    span: handover.Span = {"written_from": cut_of(operation)} if "from" in again else {}
    handover.restart_old(context, source, span)


def give_way(context: Context) -> Outcome:
    """Take out of the outputs what the old version will write again, or instead."""
    operation = context.operation
    keys = [AFTER, *([UNTIL] if operation.result["again"].get("doubled") else [])]
    made = [run_named(operation, key) for key in keys if key in operation.result]
    return handover.restore_outputs_of(context, [run.engine_job_id for run in made])


def _made(operation: Operation) -> Iterator[Run]:
    """The runs of this cut over, as far as there are any."""
    return (run_named(operation, key) for key in (AFTER, UNTIL) if key in operation.result)


def _adopt(operation: Operation, key: str, run: Run) -> None:
    operation.result[key] = run.pk
    adopt(operation, run)


def _refuse(sentence: str) -> None:
    if sentence:
        raise StepFailed(sentence)


def _refuse_old(context: Context, summary: SavepointSummary) -> None:
    at, who = cut_of(context.operation), f"version {old_run_of(context.operation).version.number}"
    _refuse(cutting.why_passed(summary, at, who) or cutting.why_never(summary, at, who))


def _doubled(context: Context) -> str:
    """Which outputs have windows twice, because nothing can be taken out of them."""
    replay = replay_of(context.operation)
    names = ", ".join(replay.outputs.exclude(why_not="").values_list("name", flat=True))
    since = savepoint_of(context.operation)
    return f"; {names} may have windows since savepoint {since.pk} twice" if names else ""
