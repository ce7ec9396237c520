"""Dispose: delete the files of a savepoint that is marked for deletion, and then its record.

    delete → gone

Guarantee   The record ends after the files, never before: while storage fails the savepoint stays
            marked and is tried again later. What has come to be needed since it was marked, is
            not deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from controlplane.access.errors import Refused, conflict
from controlplane.jobs.models import Job
from controlplane.operations.contract import Context, Kind, Outcome, Step, StepFailed
from controlplane.operations.models import Operation
from controlplane.operations.steps import deleting
from controlplane.operations.steps.rows import conclude
from controlplane.snapshots import lifecycle as savepoints
from controlplane.snapshots.keeping import kept_because
from controlplane.snapshots.models import Savepoint

RETRY_S = 60.0
LONGEST_RETRY_S = 6 * 3_600.0


def delete(context: Context) -> Outcome:
    """Ask the engine to delete the files, unless they are gone."""
    return deleting.delete(context, _location(context))


def await_gone(context: Context) -> Outcome:
    """See them gone."""
    what = f"savepoint {context.params['savepoint']}"
    return deleting.await_gone(context, _location(context), what)


def _location(context: Context) -> str:
    return str(context.params["location"])


def _savepoint(operation: Operation) -> Savepoint:
    return Savepoint.objects.get(pk=operation.params["savepoint"])


def record_gone(context: Context) -> None:
    """The record ends."""
    savepoint = _savepoint(context.operation)
    savepoints.deleted(savepoint, context.now)
    conclude(context, f"savepoint {savepoint.pk} of {context.job.name} is deleted")


class Dispose(Kind):
    """Delete a savepoint."""

    name = "dispose"
    settled = frozenset({"delete", "gone"})
    steps = (
        Step("delete", "asks the engine to delete the files", delete),
        Step("gone", "waits for the files to be gone", await_gone, record_gone, 600.0),
    )

    def scope(self, job: Job, params: Mapping[str, Any]) -> str:
        """The savepoint, of which at most one thing is done at a time."""
        return f"savepoint:{params['savepoint']}"

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Look again at what needs it: with the job's row locked, nothing new can begin."""
        savepoint = Savepoint.objects.get(pk=params["savepoint"], job=job)
        if savepoint.status != Savepoint.Status.MARKED:
            status = savepoint.get_status_display().lower()
            msg = f"savepoint {savepoint.pk} is not deleted: it is {status}, not marked for that"
            raise conflict(msg)
        if reason := kept_because(savepoint):
            msg = f"savepoint {savepoint.pk} is not deleted: {reason}"
            raise Refused(409, "needed", msg)

    def begin(self, operation: Operation, now: datetime) -> None:
        """From now on nobody can object."""
        savepoint = _savepoint(operation)
        operation.params |= {"location": savepoint.location}
        savepoints.delete(savepoint)

    def fail(self, context: Context, failure: StepFailed) -> None:
        """It stays marked, and is tried again later, each time after a longer while."""
        savepoint = _savepoint(context.operation)
        pause_s = min(LONGEST_RETRY_S, RETRY_S * 2 ** min(savepoint.delete_tries, 20))
        again_at = context.now + timedelta(seconds=pause_s)
        savepoints.delete_failed(savepoint, str(failure), again_at)
