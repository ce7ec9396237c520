"""Cut over at an event time T: the old version writes windows up to it, the new one from it on.

    upload → outputs → ready → trigger → savepoint → manifest → old_end → ahead →
        upload_until → start_until → until_up →
        stop_replay → replay_savepoint → replay_end → new_ahead →
        upload_after → start_after → reach
    recovery   look → withdraw → gone → again → restore → upload_old → start_old → confirm_old

Guarantee   Each window is written by exactly one run. The old version does not write only from its
            stop until it runs again, which is measured; the new one may be late, and then writes
            what it owes. Cut short anywhere, the old version goes on alone, with its outputs, or
            the operation says that none runs and from where to start which.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.access.errors import conflict
from controlplane.backends.models import Cluster
from controlplane.jobs.models import Job
from controlplane.operations.contract import Context, Step, StepFailed
from controlplane.operations.kinds.promotions import (
    CONFIRM_OLD,
    START_OLD,
    PromoteReplay,
    look,
    record_look,
    record_old_end,
    replay_stops,
    stopped,
)
from controlplane.operations.kinds.savepoint import READY, TAKE
from controlplane.operations.models import Operation
from controlplane.operations.steps import cutting, ending, handover, snapshotting, starting
from controlplane.operations.steps.rows import (
    conclude,
    old_run_of,
    replay_of,
    run_named,
    savepoint_of,
)
from controlplane.replay import lifecycle as replays
from controlplane.replay.cutting import check_ahead, text_of

BEFORE_ANYTHING = ("upload", "outputs", "ready")
"""A failure there has stopped nothing."""
A_DAY_S = 86_400.0
"""How long the old version may take to T; the new one may have to wait for its slots as long."""


def record_over(context: Context) -> None:
    """The new version is the live one, and the old one has written up to T."""
    cutting.record_reached(context)
    operation, replay = context.operation, replay_of(context.operation)
    run, still_ms = run_named(operation, cutting.AFTER), operation.result["still_ms"]
    replays.promoted(
        replay,
        context.now,
        old_run=old_run_of(operation),
        old_savepoint=savepoint_of(operation),
        new_run=run,
        still_ms=still_ms,
    )
    text = (
        f"{context.job.name} runs version {run.version.number} from "
        f"{text_of(cutting.cut_of(operation))} on, promoted from {replay.name}; "
        f"no version ran for {still_ms / 1000:.1f} s"
    )
    conclude(context, text, f"/replays/{replay.pk}/")


def gave(operation: Operation) -> bool:
    """Whether rows are in the outputs that the old version will write itself."""
    doubled = operation.result.get("again", {}).get("doubled", False)
    return stopped(operation) and (cutting.AFTER in operation.result or doubled)


OLD_STOPS = (
    READY,
    Step("trigger", "asks the old version to stop with a savepoint", snapshotting.trigger_stop),
    *TAKE,
    Step("old_end", "waits for the old version to end", ending.await_end, record_old_end, 120.0),
    Step("ahead", "looks whether it got past T", cutting.check_old, cutting.create_until_run),
)
OLD_GOES_ON = (
    Step("upload_until", "gives the engine the old job file", starting.upload_run, builds=True),
    Step("start_until", "starts the old version again, up to T", starting.start, builds=True),
    Step(
        "until_up",
        "waits for every task of the old version to run",
        starting.confirm,
        cutting.record_until_up,
        timeout_s=120.0,
    ),
)
REPLAY_STOPS = (
    *replay_stops(handover.record_replays_end),
    Step("new_ahead", "looks whether it got past T", cutting.check_new, cutting.create_after_run),
)
NEW_STARTS = (
    Step("upload_after", "gives the engine the new job file", starting.upload_run, builds=True),
    Step("start_after", "starts the new version, from T on", starting.start, builds=True),
    Step("reach", "waits for the old version to get to T", cutting.reach, record_over, A_DAY_S),
)


class CutOver(PromoteReplay):
    """Let a replay's version take the place of the live one at an event time."""

    name = "cut_over"
    timeout_s = A_DAY_S
    steps = (
        Step("upload", "gives the engine the job file", starting.upload, builds=True),
        Step(
            "outputs",
            "looks whether every output can be cut at T",
            cutting.check_outputs,
            cutting.record_outputs,
        ),
        *OLD_STOPS,
        *OLD_GOES_ON,
        *REPLAY_STOPS,
        *NEW_STARTS,
    )
    recovery = (
        Step("look", "looks whether the old version runs", look, record_look, 120.0),
        Step("withdraw", "takes both runs back", cutting.withdraw, when=cutting.begun),
        Step(
            "gone",
            "waits for both to end",
            cutting.await_gone,
            cutting.record_gone,
            timeout_s=120.0,
            when=cutting.begun,
        ),
        Step(
            "again",
            "finds where the old version goes on",
            cutting.find_again,
            cutting.record_again,
            when=stopped,
        ),
        Step("restore", "takes out what it writes itself", cutting.give_way, when=gave),
        *START_OLD,
        CONFIRM_OLD,
    )

    settled = frozenset(step.name for step in steps) - {*BEFORE_ANYTHING, "reach"}

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """As any promotion, and T must be ahead of both."""
        super().check(job, params)
        if job.cluster.kind == Cluster.Kind.FLINK:
            msg = (
                f"{job.name} cannot be cut over at a time: Flink jobs do not end there; "
                "promote with the results since the savepoint instead"
            )
            raise conflict(msg)
        check_ahead(job.replays.get(pk=params["replay"]), datetime.fromisoformat(params["at"]))

    def must_recover(self, operation: Operation, failure: StepFailed) -> bool:
        """From the moment on that the old version was asked to stop."""
        return operation.step not in BEFORE_ANYTHING
