"""Our additions about running jobs: streaming statistics, how fast sources may read, live state."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.rest.errors import BadRequest
from engine.rest.model.states import StateQuery
from engine.rest.parsing import body_of, hex_id, query_number, service_of
from engine.rest.render import batches

WINDOW_S, LONGEST_S = 300, 3_600


async def statistics(request: Request) -> JSONResponse:
    """What source batches came to in the last `window` seconds, in steps of `step` seconds."""
    step = query_number(request, "step")
    step_s = 1 if step is None else step
    window = query_number(request, "window")
    window_s = WINDOW_S // step_s * step_s if window is None and step_s else window or 0
    if not (0 < step_s <= window_s <= LONGEST_S and window_s % step_s == 0):
        msg = (
            f"window must be at most {LONGEST_S} s and a whole number of steps: got window "
            f"{window_s}, step {step_s}; pass e.g. window=300&step=5"
        )
        raise BadRequest(msg)
    known = await service_of(request).statistics(hex_id(request, "jobid"), window_s, step_s)
    return JSONResponse(batches.statistics(known))


async def read_limits(request: Request) -> JSONResponse:
    """How fast each source may read."""
    known = await service_of(request).read_limits(hex_id(request, "jobid"))
    return JSONResponse(batches.read_limits(known))


async def limit_reading(request: Request) -> JSONResponse:
    """Change how fast one source, or each, may read; null: as fast as it can."""
    body = await body_of(request)
    if "rowsPerSecond" not in body.fields:
        msg = "field rowsPerSecond is missing; send a number of rows, or null for no limit"
        raise BadRequest(msg)
    rate, source = body.number("rowsPerSecond"), body.text("source")
    job_id = hex_id(request, "jobid")
    times = body.number("timesRealTime")
    known = await service_of(request).limit_reading(job_id, source, rate, times)
    return JSONResponse(batches.read_limits(known))


async def state(request: Request) -> JSONResponse:
    """What one key has in one state: `key` is its only column, or `key.<column>` each of them."""
    given = request.query_params.multi_items()
    key = {
        name.removeprefix("key").removeprefix("."): value
        for name, value in given
        if name == "key" or name.startswith("key.")
    }
    wanted = StateQuery(
        str(request.path_params["operator"]), str(request.path_params["state"]), key
    )
    found = await service_of(request).live_state(hex_id(request, "jobid"), wanted)
    names = {"operator": wanted.operator, "state": wanted.state}
    return JSONResponse({**names, **found.to_json()})


_JOB = "/headwater/jobs/{jobid}"

ROUTES = (
    Route(f"{_JOB}/statistics", statistics),
    Route(f"{_JOB}/read-limits", read_limits, methods=["GET"]),
    Route(f"{_JOB}/read-limits", limit_reading, methods=["PATCH"]),
    Route(f"{_JOB}/state/{{operator:path}}/{{state}}", state),
)
