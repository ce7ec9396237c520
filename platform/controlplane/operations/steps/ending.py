"""Steps that end a run: ask for it, see it end."""

from __future__ import annotations

from controlplane.backends.errors import EngineRefused, UnknownJob
from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import Run, RunState
from controlplane.operations.contract import Context, Done, Outcome, StepFailed, Superseded, Wait
from controlplane.operations.steps.rows import old_run_of, run_of


def cancel(context: Context) -> Outcome:
    """Ask the engine to cancel the run; one that it does not know needs nothing."""
    return cancel_run(context, run_of(context.operation))


def cancel_run(context: Context, run: Run) -> Outcome:
    """Ask the engine to cancel `run`; one that has ended, or was never started, needs nothing."""
    try:
        context.engine.cancel(run.engine_job_id)
    except UnknownJob:
        return Done({"ended": "CANCELED"})
    except EngineRefused:
        if not context.engine.job(run.engine_job_id).has_ended:
            raise
    return Done()


def await_end(context: Context) -> Outcome:
    """See the run end; one that was never started has."""
    if "ended" in context.result:
        return Done()
    return await_end_of(context, old_run_of(context.operation))


def await_end_of(context: Context, run: Run) -> Outcome:
    """See `run` end."""
    try:
        job = context.engine.job(run.engine_job_id)
    except UnknownJob:
        return Done({"ended": "LOST"})
    if not job.has_ended:
        return Wait(f"job {job.name} is {job.state}")
    return Done({"ended": job.state, "end_reason": job.failure})


def record_end(context: Context) -> None:
    """The run has ended."""
    found = context.result
    run = old_run_of(context.operation)
    runs.observe(run, found["ended"], context.now, failure=found.get("end_reason", ""))


def forget_end(context: Context) -> None:
    """The run has ended; how the one that takes its place ends is another matter."""
    record_end(context)
    for name in ("ended", "end_reason"):
        context.operation.result.pop(name, None)
    context.operation.save(update_fields=["result"])


def end_unstarted(context: Context, failure: StepFailed) -> None:
    """A run that never came up has failed; of one that another operation ends, that one decides."""
    if "run" not in context.result or isinstance(failure, Superseded):
        return
    run = run_of(context.operation)
    if run.state == RunState.INITIALIZING:
        runs.observe(run, RunState.FAILED, context.now, failure=str(failure))
