"""Routes about uploaded programs, at the place where Flink takes jars: upload, plan, run.

    POST /jars/upload ─▶ id, then GET or POST /jars/:id/plan ─▶ its graph
                              or POST /jars/:id/run         ─▶ a job

Neither the name nor the id of a file ever decides where it lies.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.rest.errors import BadRequest
from engine.rest.filenames import safe_filename
from engine.rest.model.requests import ClaimMode, Program, RunRequest
from engine.rest.parsing import Body, body_of, choice, query_number, service_of, shell_words
from engine.rest.render import cluster
from engine.rest.render.plan import flink_plan

NO_JOB = "0" * 32
"""The job id in the plan of a program that does not run."""


async def artifacts(request: Request) -> JSONResponse:
    """Every uploaded program."""
    address = str(request.base_url).rstrip("/")
    return JSONResponse(cluster.artifacts(address, await service_of(request).artifacts()))


async def upload(request: Request) -> JSONResponse:
    """Take one program: a job file, a zip or a wheel."""
    with tempfile.TemporaryDirectory(prefix="headwater-upload-") as folder:
        content = Path(folder, "content")
        async with request.form(max_files=2, max_fields=10) as form:
            file = _only_file(form)
            filename = safe_filename(file.filename or "")
            await run_in_threadpool(_copy, file, content)
        artifact = await service_of(request).upload_artifact(filename, content)
    # Flink answers with a path of which clients take the last segment: the id alone serves them.
    return JSONResponse({"filename": artifact.id, "status": "success"})


async def delete(request: Request) -> JSONResponse:
    """Forget an uploaded program."""
    await service_of(request).delete_artifact(_artifact_id(request))
    return JSONResponse({})


async def plan(request: Request) -> JSONResponse:
    """The graph that a program would run as."""
    program = program_of(request, _artifact_id(request), await body_of(request))
    return JSONResponse({"plan": flink_plan(NO_JOB, await service_of(request).plan(program))})


async def run(request: Request) -> JSONResponse:
    """Start a job."""
    body = await body_of(request)
    query = request.query_params
    allowed = query.get("allowNonRestoredState", "").lower() == "true"
    wanted = RunRequest(
        program=program_of(request, _artifact_id(request), body),
        job_id=body.hex_id("jobId"),
        savepoint_path=body.text("savepointPath") or query.get("savepointPath") or None,
        allow_non_restored=allowed or allowance_of(body),
        accept_missing_input=frozenset(body.texts("acceptMissingInput")),
        claim=_claim_of(body),
    )
    job_id = await service_of(request).run(wanted)
    return JSONResponse({"jobid": job_id, "applicationId": job_id})


def program_of(request: Request, artifact_id: str, body: Body) -> Program:
    """The program that a body names, with what the query adds where the body is silent."""
    in_query = Body({"parallelism": query_number(request, "parallelism")})
    arguments = body.texts("programArgsList") or request.query_params.getlist("programArg")
    arguments = arguments or shell_words(body.text("programArgs") or "", "programArgs")
    return Program(
        artifact_id=artifact_id,
        arguments=tuple(arguments),
        parallelism=body.count("parallelism") or in_query.count("parallelism"),
        settings=body.settings("flinkConfiguration"),
        entry=body.text("entryClass") or request.query_params.get("entry-class") or None,
    )


def allowance_of(body: Body) -> bool | frozenset[str]:
    """What may stay behind in a snapshot: everything, or the operators that are named."""
    if body.flag("allowNonRestoredState"):
        return True
    return frozenset(body.texts("allowNonRestoredOperators"))


def _claim_of(body: Body) -> ClaimMode:
    """Who shall own the snapshot; Flink 1 called it restoreMode."""
    given = body.text("claimMode") or body.text("restoreMode") or ClaimMode.NO_CLAIM
    return choice(ClaimMode, given, "claimMode")


def _only_file(form: FormData) -> UploadFile:
    files = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
    if len(files) != 1:
        msg = f"exactly 1 file must be sent: got {len(files)}; send it as the form field jarfile"
        raise BadRequest(msg)
    return files[0]


def _copy(upload: UploadFile, target: Path) -> None:
    with target.open("wb") as copy:
        shutil.copyfileobj(upload.file, copy)


def _artifact_id(request: Request) -> str:
    return str(request.path_params["jarid"])


ROUTES = (
    Route("/jars", artifacts),
    Route("/jars/upload", upload, methods=["POST"]),
    Route("/jars/{jarid}", delete, methods=["DELETE"]),
    Route("/jars/{jarid}/plan", plan, methods=["GET", "POST"]),
    Route("/jars/{jarid}/run", run, methods=["POST"]),
)
