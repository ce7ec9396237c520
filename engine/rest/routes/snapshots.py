"""Routes that look into snapshots, under /headwater: what one holds, its damage, its rows.

GET  /headwater/savepoints?path=              ─▶ its manifest
POST /headwater/savepoints/read               ─▶ rows of one state
POST /headwater/savepoints/verifications      ─▶ trigger id ─▶ GET …/:id
POST /headwater/savepoints/comparisons        ─▶ trigger id ─▶ GET …/:id
POST /headwater/preflight                     ─▶ what a start from it would restore
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.checkpoint.inspection.questions import StateQuestion
from engine.rest.errors import BadRequest
from engine.rest.model.requests import PreflightRequest
from engine.rest.model.snapshots import MAX_EXAMPLES, MAX_ROWS
from engine.rest.parsing import Body, body_of, hex_id, service_of
from engine.rest.render import snapshots as render
from engine.rest.routes.answers import triggered
from engine.rest.routes.artifacts import allowance_of, program_of

ROWS = 100
"""Rows of an answer, and examples of a state, when nobody says how many."""
EXAMPLES = 3


async def savepoint(request: Request) -> JSONResponse:
    """What a snapshot holds, from its manifest."""
    path = request.query_params.get("path")
    if not path:
        msg = "query parameter path is missing; name the folder of a snapshot"
        raise BadRequest(msg)
    return JSONResponse(render.savepoint(path, await service_of(request).savepoint(path)))


async def read(request: Request) -> JSONResponse:
    """Rows of one state: all, or those of a key or a query."""
    body = await body_of(request)
    question = StateQuestion(
        operator=needed(body, "operator"),
        state=needed(body, "state"),
        key=body.settings("key"),
        sql=body.text("sql"),
        limit=body.count("limit", most=MAX_ROWS) or ROWS,
    )
    rows = await service_of(request).read_state(needed(body, "path"), question)
    return JSONResponse(rows.to_json())


async def verify(request: Request) -> JSONResponse:
    """Begin to read every byte of a snapshot."""
    body = await body_of(request)
    path, trigger_id = needed(body, "path"), body.hex_id("triggerId")
    return triggered(await service_of(request).verify_savepoint(path, trigger_id))


async def verification(request: Request) -> JSONResponse:
    """Where a verification stands."""
    status = await service_of(request).verification(hex_id(request, "triggerid"))
    return JSONResponse(render.inspection(status))


async def compare(request: Request) -> JSONResponse:
    """Begin to compare two snapshots."""
    body = await body_of(request)
    examples = body.count("examples", least=0, most=MAX_EXAMPLES)
    trigger_id = await service_of(request).compare_savepoints(
        needed(body, "left"),
        needed(body, "right"),
        EXAMPLES if examples is None else examples,
        body.hex_id("triggerId"),
    )
    return triggered(trigger_id)


async def comparison(request: Request) -> JSONResponse:
    """Where a comparison stands."""
    status = await service_of(request).comparison(hex_id(request, "triggerid"))
    return JSONResponse(render.inspection(status))


async def preflight(request: Request) -> JSONResponse:
    """What a start from a snapshot would restore; starts nothing."""
    body = await body_of(request)
    path = needed(body, "savepointPath")
    wanted = PreflightRequest(
        program=program_of(request, needed(body, "artifact"), body),
        savepoint_path=path,
        allow_non_restored=allowance_of(body),
        accept_missing_input=frozenset(body.texts("acceptMissingInput")),
    )
    return JSONResponse(render.preflight(path, await service_of(request).preflight(wanted)))


def needed(body: Body, name: str) -> str:
    """A text that a body must have. Raises BadRequest."""
    value = body.text(name)
    if not value:
        msg = f"field {name} is missing from the request body"
        raise BadRequest(msg)
    return value


_SAVEPOINTS = "/headwater/savepoints"

ROUTES = (
    Route(_SAVEPOINTS, savepoint),
    Route(f"{_SAVEPOINTS}/read", read, methods=["POST"]),
    Route(f"{_SAVEPOINTS}/verifications", verify, methods=["POST"]),
    Route(f"{_SAVEPOINTS}/verifications/{{triggerid}}", verification),
    Route(f"{_SAVEPOINTS}/comparisons", compare, methods=["POST"]),
    Route(f"{_SAVEPOINTS}/comparisons/{{triggerid}}", comparison),
    Route("/headwater/preflight", preflight, methods=["POST"]),
)
