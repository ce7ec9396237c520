"""Our additions about running jobs: streaming statistics."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.rest.errors import BadRequest
from engine.rest.parsing import hex_id, query_number, service_of
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


_JOB = "/headwater/jobs/{jobid}"

ROUTES = (Route(f"{_JOB}/statistics", statistics),)
