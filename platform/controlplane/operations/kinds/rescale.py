"""Rescale: run a job on at another parallelism.

    where the engine can    ask → resized
    where it cannot         ask → the steps of an upgrade to the same version

Guarantee   The job's setting follows only when the job runs so. A job that cannot start at the new
            parallelism runs on at the old one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from controlplane.access.errors import Refused
from controlplane.backends.contract import EngineJob
from controlplane.backends.errors import UnknownTrigger, Unsupported
from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import Job
from controlplane.jobs.settings import checked_parallelism
from controlplane.operations.contract import Context, Done, Outcome, Step, StepFailed, Wait
from controlplane.operations.kinds import checks
from controlplane.operations.kinds.deploy import record_up
from controlplane.operations.kinds.savepoint import begin_savepoint
from controlplane.operations.kinds.upgrade import Upgrade, only, saves
from controlplane.operations.models import Operation
from controlplane.operations.steps.rows import conclude, old_run_of
from controlplane.snapshots.models import Savepoint


def in_place(operation: Operation) -> bool:
    """Whether the engine does it by itself."""
    return bool(operation.result.get("in_place"))


def by_restart(operation: Operation) -> bool:
    """Whether the job is stopped and started again."""
    return not in_place(operation)


def ask(context: Context) -> Outcome:
    """Ask the engine, or find out that it cannot."""
    run, wanted = old_run_of(context.operation), int(context.params["parallelism"])
    try:
        context.engine.rescale(run.engine_job_id, wanted, context.derived_id("rescale"))
    except Unsupported:
        return Done({"in_place": False, "stops": True})
    return Done({"in_place": True})


def record_asked(context: Context) -> None:
    """A job that is to be started again stops with a savepoint, which the catalogue lists."""
    operation = context.operation
    if by_restart(operation):
        begin_savepoint(operation, Savepoint.Origin.UPGRADE)
        operation.result.pop("run")
        operation.save(update_fields=["result", "run"])


def resized(context: Context) -> Outcome:
    """See it run at the new parallelism."""
    run, wanted = old_run_of(context.operation), int(context.params["parallelism"])
    job = context.engine.job(run.engine_job_id)
    try:
        status = context.engine.rescale_status(run.engine_job_id, context.derived_id("rescale"))
    except UnknownTrigger:
        return _after_forgetting(context, job, wanted)
    if status.failure:
        msg = f"{run.job.name} runs on at parallelism {run.parallelism}: {status.failure}"
        raise StepFailed(msg)
    if not status.done or not job.is_up:
        return Wait(f"waits for every task to run at parallelism {wanted}")
    return Done({"plan": dict(job.plan), "state": job.state})


def _after_forgetting(context: Context, job: EngineJob, wanted: int) -> Outcome:
    """The engine does not know our id (any more): see whether it is done, or ask again."""
    if _parallelism(job) != wanted:
        ask(context)
    elif job.is_up:
        return Done({"plan": dict(job.plan), "state": job.state})
    return Wait("the engine forgot what it was asked for and was asked again", 1.0, retry=True)


def _parallelism(job: EngineJob) -> int:
    """What most vertices have: what an author chose apart stays as it is."""
    counts = Counter(int(node["parallelism"]) for node in job.plan.get("nodes", ()))
    return counts.most_common(1)[0][0] if counts else 0


def record_resized(context: Context) -> None:
    """The run, and the next start, have the new parallelism."""
    wanted, run = int(context.params["parallelism"]), old_run_of(context.operation)
    runs.resize(run, wanted)
    runs.observe(run, context.result["state"], context.now, plan=context.result["plan"])
    conclude(context, f"{context.job.name} runs at parallelism {wanted}")


def record_restarted(context: Context) -> None:
    """The new run is up; the next start has its parallelism."""
    record_up(context)
    runs.keep_parallelism(context.job, int(context.params["parallelism"]))
    conclude(context, f"{context.job.name} runs at parallelism {context.params['parallelism']}")


def _restart_steps() -> tuple[Step, ...]:
    """An upgrade with a savepoint, whose last step also changes the setting."""
    steps = [only(step, by_restart) for step in Upgrade.steps if step.when is saves or _plain(step)]
    last = steps[-1]
    return (
        *steps[:-1],
        replace(last, record=record_restarted),
    )


def _plain(step: Step) -> bool:
    return step.name in {"upload", "check", "fit", "start", "confirm"}


class Rescale(Upgrade):
    """Change the parallelism of a running job."""

    name = "rescale"
    settled = Upgrade.settled | {"ask", "resized"}
    steps = (
        Step("ask", "asks the engine to run the job at another parallelism", ask, record_asked),
        Step(
            "resized",
            "waits for every task to run at the new parallelism",
            resized,
            record_resized,
            timeout_s=300.0,
            when=in_place,
        ),
        *_restart_steps(),
    )

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Only a running job, and only to what it has not."""
        run = checks.require_live_run(job, "rescale")
        wanted = checked_parallelism(params["parallelism"])
        if wanted == run.parallelism:
            msg = f"job {job.name} runs at parallelism {wanted} already; choose another"
            raise Refused(409, "same_parallelism", msg, {"parallelism": msg})

    def begin(self, operation: Operation, now: datetime) -> None:
        """It is about the live run."""
        run = checks.require_live_run(operation.job, "rescale")
        operation.run = run
        operation.result |= {"old_run": run.pk}

    def fail(self, context: Context, failure: StepFailed) -> None:
        """In place nothing was touched; else what an upgrade leaves."""
        if by_restart(context.operation):
            super().fail(context, failure)
