"""Discard: delete what a cancelled savepoint leaves, once the engine has come to an end with it.

    ended → complete → delete → gone

An engine cannot be told to stop writing a savepoint. So the one who cancels it need not wait, and
this operation does.

Guarantee   Nothing of it stays in storage. One that was complete before its cancelling was seen is
            in the catalogue, and is kept.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from controlplane.backends.errors import UnknownTrigger
from controlplane.jobs.models import Job
from controlplane.operations.contract import Context, Done, Kind, Outcome, Step, Wait
from controlplane.operations.kinds.savepoint import SAVEPOINT_TIMEOUT_S
from controlplane.operations.models import Operation
from controlplane.operations.steps import deleting, snapshotting
from controlplane.operations.steps.rows import conclude, old_run_of


def await_cancelled(context: Context) -> Outcome:
    """See the savepoint's own operation end."""
    original = _original(context)
    if not original.is_finished:
        return Wait("waits for the savepoint's operation to end")
    return Done({"kept": original.state == Operation.State.SUCCEEDED})


def await_complete(context: Context) -> Outcome:
    """See the engine come to an end with it, whether or not anything came of it."""
    if context.result["kept"]:
        return Done({"location": ""})
    original = _original(context)
    asked = replace(context, operation=original)
    try:
        status = context.engine.savepoint_status(
            old_run_of(original).engine_job_id, snapshotting.trigger_id(asked)
        )
    except UnknownTrigger:
        return Done({"location": snapshotting.find(asked)})
    if not status.done:
        return Wait("waits for the engine to come to an end with the savepoint")
    return Done({"location": status.location})


def delete(context: Context) -> Outcome:
    """Ask the engine to delete the files, if there are any."""
    location = str(context.result["location"])
    return deleting.delete(context, location) if location else Done({"gone": True})


def await_gone(context: Context) -> Outcome:
    """See them gone."""
    location = str(context.result["location"])
    return deleting.await_gone(context, location, "what the cancelled savepoint left")


def record_gone(context: Context) -> None:
    """Say what became of it."""
    kept = "it was complete before, and is kept" if context.result["kept"] else "nothing is left"
    conclude(context, f"cancelled savepoint of {context.job.name}: {kept}")


def _original(context: Context) -> Operation:
    return Operation.objects.select_related("job__cluster", "run").get(
        pk=uuid.UUID(context.params["of"])
    )


class Discard(Kind):
    """Delete what a cancelled savepoint leaves."""

    name = "discard"
    settled = frozenset({"ended", "complete", "delete", "gone"})
    steps = (
        Step("ended", "waits for the savepoint's operation to end", await_cancelled, timeout_s=300),
        Step(
            "complete",
            "waits for the engine to come to an end with the savepoint",
            await_complete,
            timeout_s=SAVEPOINT_TIMEOUT_S,
        ),
        Step("delete", "asks the engine to delete the files", delete),
        Step("gone", "waits for the files to be gone", await_gone, record_gone, 600.0),
    )

    def scope(self, job: Job, params: Mapping[str, Any]) -> str:
        """The operation that was cancelled: the job can go on meanwhile."""
        return f"discard:{params['of']}"
