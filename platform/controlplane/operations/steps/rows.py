"""What steps are about, found by what the operation keeps; and what it keeps when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from controlplane.jobs.models import JobVersion, Run
from controlplane.operations.contract import Context
from controlplane.operations.models import Operation
from controlplane.replay.models import Replay
from controlplane.snapshots.models import Savepoint

STATELESS = "stateless"
"""The mode of an upgrade that leaves all state behind."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a run starts from: a savepoint of the catalogue, another snapshot, or nothing."""

    savepoint: Savepoint | None = None
    path: str = ""

    @classmethod
    def of(cls, savepoint: Savepoint) -> Source:
        """A savepoint of the catalogue."""
        return cls(savepoint, savepoint.location)

    def __str__(self) -> str:
        if self.savepoint:
            return f"savepoint {self.savepoint.pk}"
        return f"checkpoint {self.path.rstrip('/').rpartition('/')[2]}" if self.path else "nothing"


def version_of(operation: Operation) -> JobVersion:
    """The version that is asked for."""
    return JobVersion.objects.select_related("job").get(pk=operation.params["version"])


def run_of(operation: Operation) -> Run:
    """The run that it starts, or acts on."""
    return _run(operation.result["run"])


def old_run_of(operation: Operation) -> Run:
    """The run that it takes a savepoint of: an upgrade's first, anybody else's only one."""
    return _run(operation.result.get("old_run", operation.result.get("run")))


def run_named(operation: Operation, key: str) -> Run:
    """The run that the operation keeps under that name."""
    return _run(operation.result[key])


def savepoint_of(operation: Operation) -> Savepoint:
    """The savepoint that it takes."""
    return Savepoint.objects.get(pk=operation.result["savepoint"])


def source_of(operation: Operation) -> Source:
    """What the run that it was asked for starts from."""
    if chosen := operation.params.get("savepoint"):
        return Source.of(Savepoint.objects.get(pk=chosen))
    if operation.params.get("mode") == STATELESS:
        return Source()
    if path := operation.params.get("snapshot"):
        return Source(path=path)
    return left_behind_by(operation)


def left_behind_by(operation: Operation) -> Source:
    """What the run that it ended left: the savepoint it stopped with, or its last checkpoint."""
    if taken := operation.result.get("savepoint"):
        return Source.of(Savepoint.objects.get(pk=taken))
    return Source(path=operation.result.get("snapshot", ""))


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
