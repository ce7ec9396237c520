"""Import: take a savepoint that lies somewhere into the catalogue of a job.

    manifest → verify → look

Guarantee   The row is written last: what the engine may not read, or finds damaged, is never in the
            catalogue. Which folders it may read is the engine's setting.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from controlplane.access.errors import conflict
from controlplane.jobs.models import Job
from controlplane.operations.contract import Context, Done, Kind, Outcome, Step, StepFailed
from controlplane.operations.kinds.verify import ASK, LOOK_TEXT, VERIFY_TIMEOUT_S, VERIFYING_S, look
from controlplane.operations.steps.rows import conclude
from controlplane.operations.steps.snapshotting import summary_from, summary_json
from controlplane.snapshots import lifecycle as savepoints
from controlplane.snapshots.models import ENDED


def read_manifest(context: Context) -> Outcome:
    """What it says of itself."""
    summary = context.engine.savepoint(context.params["location"])
    if is_known(context.job, summary.location):
        raise StepFailed(known_text(context.job, summary.location))
    return Done({"summary": summary_json(summary)})


def look_whole(context: Context) -> Outcome:
    """See that every byte is as it was written."""
    outcome = look(context)
    if isinstance(outcome, Done) and (problems := outcome.found.get("problems")):
        msg = f"savepoint {context.params['location']} is not imported: {problems[0]}"
        raise StepFailed(msg)
    return outcome


def record_import(context: Context) -> None:
    """Put it into the catalogue."""
    summary = summary_from(context.result["summary"])
    savepoint = savepoints.take_in(
        context.job, summary, context.params["label"], context.operation.actor, context.now
    )
    text = f"savepoint {savepoint.pk} is in the catalogue of {context.job.name}"
    conclude(context, text, f"/savepoints/{savepoint.pk}/")


def is_known(job: Job, location: str) -> bool:
    """Whether it is in the catalogue already."""
    return job.savepoints.filter(location=location).exclude(status__in=ENDED).exists()


def known_text(job: Job, location: str) -> str:
    """The sentence that says so."""
    return f"savepoint {location} is in the catalogue of {job.name} already"


class ImportSavepoint(Kind):
    """Import a savepoint."""

    name = "import"
    timeout_s = VERIFYING_S
    steps = (
        Step("manifest", "reads the manifest", read_manifest),
        ASK,
        Step("look", LOOK_TEXT, look_whole, record_import, VERIFY_TIMEOUT_S),
    )

    def scope(self, job: Job, params: Mapping[str, Any]) -> str:
        """One folder comes once into one job."""
        place = hashlib.sha256(str(params["location"]).encode()).hexdigest()[:16]
        return f"import:{job.pk}:{place}"

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Refuse what is there."""
        if is_known(job, params["location"]):
            raise conflict(known_text(job, params["location"]))
