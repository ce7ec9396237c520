"""What steps are about, found by what the operation keeps; and what it keeps when it ends."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from controlplane.jobs.models import JobVersion, Run
from controlplane.operations.contract import Context
from controlplane.operations.models import Operation
from controlplane.replay.models import Replay
from controlplane.snapshots.models import Savepoint


def version_of(operation: Operation) -> JobVersion:
    """The version that is asked for."""
    return JobVersion.objects.select_related("job").get(pk=operation.params["version"])


def run_of(operation: Operation) -> Run:
    """The run that it starts, or acts on."""
    return _run(operation.result["run"])


def old_run_of(operation: Operation) -> Run:
    """The run that it takes a savepoint of: an upgrade's first, anybody else's only one."""
    return _run(operation.result.get("old_run", operation.result.get("run")))


def savepoint_of(operation: Operation) -> Savepoint:
    """The savepoint that it takes."""
    return Savepoint.objects.get(pk=operation.result["savepoint"])


def restored_of(operation: Operation) -> Savepoint | None:
    """The savepoint that its run starts from."""
    chosen = operation.params.get("savepoint") or operation.result.get("savepoint")
    return Savepoint.objects.get(pk=chosen) if chosen else None


def replay_of(operation: Operation) -> Replay:
    """The replay that it starts or ends."""
    return Replay.objects.select_related("run", "savepoint", "job").get(
        pk=operation.params["replay"]
    )


def conclude(context: Context, text: str, url: str = "") -> None:
    """Keep what came out, in one sentence, and where it can be seen; for a step's `record`."""
    operation = context.operation
    operation.result |= {"text": text} | ({"url": url} if url else {})
    operation.save(update_fields=["result"])


def folder_of(context: Context) -> str:
    """Where its savepoint goes: a folder of its own, so that it is found even when the engine has
    forgotten that it was asked for one.
    """
    own = Path(settings.HEADWATER_SAVEPOINTS) / context.job.name / context.operation.pk.hex[:12]
    return str(own)


def _run(key: int) -> Run:
    return Run.objects.select_related("job__cluster", "version", "cluster", "restored_from").get(
        pk=key
    )
