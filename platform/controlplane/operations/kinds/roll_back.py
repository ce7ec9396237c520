"""Roll a promoted replay back: the old version takes its place again.

    cancel → gone → restore → upload_old → start_old → confirm_old

Guarantee   The old version starts when the new one was seen to end: where it stopped, with its
            outputs as they were; after a cut over at an event time it writes from there on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from controlplane.jobs.models import Job, Run
from controlplane.operations.contract import Context, Kind, Step, StepFailed
from controlplane.operations.kinds.promotions import BACK, CONFIRM_OLD
from controlplane.operations.models import Operation
from controlplane.operations.steps import ending, starting
from controlplane.operations.steps.rows import conclude, replay_of, run_of
from controlplane.replay import lifecycle as replays
from controlplane.replay.readiness import rollback


def record_rolled_back(context: Context) -> None:
    """The old version is the live one again."""
    starting.record_up(context)
    operation, replay = context.operation, replay_of(context.operation)
    run = run_of(operation)
    replays.rolled_back(replay, context.now)
    text = (
        f"{context.job.name} runs version {run.version.number} again, "
        f"from savepoint {run.restored_from_id}, with its outputs"
    )
    conclude(context, text, f"/replays/{replay.pk}/")


class RollBackReplay(Kind):
    """Let the old version take its place again, with its outputs."""

    name = "rollback_replay"
    steps = (
        Step("cancel", "asks the engine to cancel the new version", ending.cancel),
        *BACK,
        replace(CONFIRM_OLD, record=record_rolled_back),
    )

    settled = frozenset(step.name for step in steps)

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Only while the run that was promoted is still the live one."""
        rollback(job.replays.get(pk=params["replay"])).require()

    def begin(self, operation: Operation, now: datetime) -> None:
        """It is about the promoted run, and the one before it."""
        replay = replay_of(operation)
        operation.run = replay.new_run
        operation.result |= {
            "run": replay.new_run_id,
            "old_run": replay.old_run_id,
            "savepoint": replay.old_savepoint_id,
        }
        replays.rolling_back(replay)

    def fail(self, context: Context, failure: StepFailed) -> None:
        """Say that no version runs."""
        operation, replay = context.operation, replay_of(context.operation)
        run = Run.objects.get(pk=operation.result["old_run"])
        text = (
            f"no version of {context.job.name} runs: {failure}; start version "
            f"{run.version.number} from savepoint {replay.old_savepoint_id}"
        )
        replays.not_rolled_back(replay, text, context.now)
        ending.end_unstarted(context, failure)
