"""Verify: let the engine read every byte of a savepoint and compare it with its hashes.

    manifest → verify → look → input

Guarantee   The verdict is what was read, never what could not be: an engine that is away, or too
            busy, changes nothing. It needs no run, and holds up nothing else of the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from controlplane.access.errors import conflict
from controlplane.backends.contract import SourceInput, Start
from controlplane.backends.errors import EngineRefused, NoSnapshot, UnknownTrigger
from controlplane.jobs.artifacts import is_whole
from controlplane.jobs.models import Job
from controlplane.jobs.settings import settings_from
from controlplane.operations.contract import Context, Done, Kind, Outcome, Step, StepFailed, Wait
from controlplane.operations.models import Operation
from controlplane.operations.steps.rows import conclude
from controlplane.snapshots import lifecycle as savepoints
from controlplane.snapshots.models import Savepoint

Verdict = Savepoint.Verdict

VERIFY_TIMEOUT_S = 4_000.0
"""The engine gives up after an hour by itself, and says so."""
VERIFYING_S = VERIFY_TIMEOUT_S + 200.0
"""Of all steps together: not less than the longest of them."""


def read_manifest(context: Context) -> Outcome:
    """One that cannot even be opened needs no more looks."""
    location = location_of(context)
    try:
        context.engine.savepoint(location)
    except NoSnapshot as gone:
        return Done({"verdict": Verdict.DAMAGED.value, "problems": [gone.message]})
    except EngineRefused as refused:
        return Done({"verdict": Verdict.UNREADABLE.value, "problems": [refused.message]})
    return Done()


def ask(context: Context) -> Outcome:
    """Begin to read, unless there is nothing to read."""
    if "verdict" not in context.result:
        context.engine.verify(location_of(context), context.derived_id("verify"))
    return Done()


def look(context: Context) -> Outcome:
    """See it come to an end."""
    if "verdict" in context.result:
        return Done()
    try:
        found = context.engine.verification(context.derived_id("verify"))
    except UnknownTrigger:
        ask(context)
        return Wait("asked the engine again", 1.0, retry=True)
    if not found.finished:
        share = f" {100 * found.done // found.total} %" if found.total else ""
        return Wait(f"reads every byte{share}", 1.0)
    if found.failure:
        raise StepFailed(found.failure)
    verdict = Verdict.DAMAGED if found.problems else Verdict.WHOLE
    return Done({"verdict": verdict.value, "problems": list(found.problems)})


def location_of(context: Context) -> str:
    """Where it lies: of a savepoint in the catalogue, or of one that is to be imported."""
    return str(context.params["location"])


def record_verdict(context: Context) -> None:
    """Keep what was found."""
    savepoint = Savepoint.objects.get(pk=context.params["savepoint"])
    verdict, problems = Verdict(context.result["verdict"]), context.result["problems"]
    savepoints.verified(savepoint, verdict, problems, context.now)
    text = f"savepoint {savepoint.pk} of {context.job.name} is whole"
    if problems:
        text = f"savepoint {savepoint.pk} of {context.job.name} is bad: {problems[0]}"
    conclude(context, text, f"/savepoints/{savepoint.pk}/")


def ask_sources(context: Context) -> Outcome:
    """Whether all input that a restore needs is there: the engine builds the graph to ask."""
    savepoint = Savepoint.objects.select_related("job", "version").get(
        pk=context.params["savepoint"]
    )
    version = savepoint.version or savepoint.job.versions.order_by("-number").first()
    if context.result["verdict"] != Verdict.WHOLE:
        return Done({"inputs": [], "why_not": "it is not whole"})
    if version is None or not is_whole(version.artifact, version.checksum):
        return Done({"inputs": [], "why_not": "there is no file of a version to ask"})
    settings = settings_from(savepoint.job.settings)
    try:
        found = context.engine.preflight(
            Start(
                artifact_id=context.engine.upload(version.filename, version.artifact),
                engine_job_id="",
                parallelism=settings.parallelism,
                arguments=settings.arguments,
                settings=settings.for_engine(savepoint.job.name),
                savepoint_path=savepoint.location,
            )
        )
    except EngineRefused as error:
        return Done({"inputs": [], "why_not": error.message})
    return Done({"inputs": [asdict(one) for one in found.inputs], "why_not": ""})


def record_input(context: Context) -> None:
    """Keep what they said."""
    savepoint = Savepoint.objects.get(pk=context.params["savepoint"])
    sources = [SourceInput(**one) for one in context.result["inputs"]]
    savepoints.input_seen(savepoint, sources, context.result["why_not"], context.now)


MANIFEST = Step("manifest", "reads the manifest", read_manifest)
ASK = Step("verify", "asks the engine to read every byte", ask)
LOOK_TEXT = "waits for the engine to read every byte"


class Verify(Kind):
    """Verify one savepoint."""

    name = "verify"
    timeout_s = VERIFYING_S
    steps = (
        MANIFEST,
        ASK,
        Step("look", LOOK_TEXT, look, record_verdict, VERIFY_TIMEOUT_S),
        Step("input", "asks its sources for the input", ask_sources, record_input, builds=True),
    )

    def scope(self, job: Job, params: Mapping[str, Any]) -> str:
        """The savepoint, of which at most one thing is done at a time."""
        return f"savepoint:{params['savepoint']}"

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Only what is complete can be whole."""
        savepoint = Savepoint.objects.get(pk=params["savepoint"], job=job)
        if savepoint.status not in {Savepoint.Status.COMPLETED, Savepoint.Status.MARKED}:
            status = savepoint.get_status_display().lower()
            msg = f"savepoint {savepoint.pk} cannot be verified: it is {status}"
            raise conflict(msg)

    def begin(self, operation: Operation, now: datetime) -> None:
        """Note where it lies."""
        savepoint = Savepoint.objects.get(pk=operation.params["savepoint"])
        operation.params |= {"location": savepoint.location}
