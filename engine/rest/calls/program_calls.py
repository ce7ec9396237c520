"""Requests about programs: upload one, look at its graph, compare it with a snapshot, run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from engine.rest.answers.cluster import (
    UploadedFile,
)
from engine.rest.answers.jobs import (
    JobPlan,
)
from engine.rest.answers.snapshots import PreflightReport
from engine.rest.calls.call import BUILD_S, Call, nothing
from engine.rest.model.requests import (
    PreflightRequest,
    Program,
    RunRequest,
)


def artifacts() -> Call[list[UploadedFile]]:
    """Uploaded job files."""
    return Call("GET", "/jars", lambda body: list(map(UploadedFile.of, body["files"])))


def upload(filename: str, content: bytes) -> Call[str]:
    """Upload a job file; its id."""

    def read(body: Mapping[str, Any]) -> str:
        return str(body["filename"]).rpartition("/")[2]

    return Call("POST", "/jars/upload", read, file=(filename, content))


def delete_artifact(artifact_id: str) -> Call[None]:
    """Forget an uploaded job file."""
    return Call("DELETE", f"/jars/{quote(artifact_id)}", nothing)


def plan(program: Program) -> Call[JobPlan]:
    """The graph that a program would run as."""
    path = f"/jars/{quote(program.artifact_id)}/plan"
    return Call(
        "POST",
        path,
        lambda body: JobPlan.of(body["plan"]),
        body=_program(program),
        needs_s=BUILD_S,
    )


def run(request: RunRequest) -> Call[str]:
    """Start a job; its id."""
    optional = {"jobId": request.job_id, "savepointPath": request.savepoint_path}
    body = _program(request.program) | _allowance(request.allow_non_restored)
    body |= {name: value for name, value in optional.items() if value is not None}
    body["claimMode"] = request.claim.value
    body |= _acceptance(request.accept_missing_input)
    path = f"/jars/{quote(request.program.artifact_id)}/run"
    return Call("POST", path, lambda answer: str(answer["jobid"]), body=body, needs_s=BUILD_S)


def preflight(request: PreflightRequest) -> Call[PreflightReport]:
    """Would this program start from this snapshot? Only our engine."""
    body = _program(request.program) | _allowance(request.allow_non_restored)
    body |= {"artifact": request.program.artifact_id, "savepointPath": request.savepoint_path}
    body |= _acceptance(request.accept_missing_input)
    return Call("POST", "/headwater/preflight", PreflightReport.of, body=body, needs_s=BUILD_S)


def _program(program: Program) -> dict[str, object]:
    body: dict[str, object] = {
        "programArgsList": list(program.arguments),
        "flinkConfiguration": dict(program.settings),
    }
    optional = {"parallelism": program.parallelism, "entryClass": program.entry}
    return body | {name: value for name, value in optional.items() if value is not None}


def _allowance(allowed: bool | frozenset[str]) -> dict[str, object]:
    if isinstance(allowed, bool):
        return {"allowNonRestoredState": allowed}
    # A Flink cluster knows nothing of single operators: it ignores the field, and refuses.
    return {"allowNonRestoredOperators": sorted(allowed)}


def _acceptance(accepted: frozenset[str]) -> dict[str, object]:
    """Only where there is any: Flink refuses what it does not know."""
    return {"acceptMissingInput": sorted(accepted)} if accepted else {}
