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

from controlplane.backends.errors import EngineRefused, NoSnapshot, UnknownTrigger
from controlplane.jobs.models import Job
from controlplane.operations.contract import Context, Done, Kind, Outcome, Step, StepFailed, Wait
from controlplane.operations.kinds.savepoint import SAVEPOINT_TIMEOUT_S
from controlplane.operations.models import Operation
from controlplane.operations.steps import snapshotting
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
    if not location or _is_gone(context, location):
        return Done({"gone": True})
    return Done({"trigger": context.engine.dispose(location)})


def await_gone(context: Context) -> Outcome:
    """See them gone."""
    if context.result.get("gone"):
        return Done()
    location = str(context.result["location"])
    try:
        failure = context.engine.disposal(context.result["trigger"])
    except UnknownTrigger:
        asked = delete(context)
        found = asked.found if isinstance(asked, Done) else {}
        return Wait("asked the engine again", 1.0, found, retry=True)
    if failure is None:
        return Wait("waits for the engine to delete the files")
    if failure and not _is_gone(context, location):
        msg = f"what the cancelled savepoint left is not deleted: {failure}"
        raise StepFailed(msg)
    return Done({"gone": True})


def _is_gone(context: Context, location: str) -> bool:
    try:
        context.engine.savepoint(location)
    except NoSnapshot:
        return True
    except EngineRefused:
        return False
    return False


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
