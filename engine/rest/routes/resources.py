"""Routes about the task managers that the job manager starts itself: our addition.

POST   /headwater/taskmanagers {"name"}      start one; without a name, the next free tm-N
DELETE /headwater/taskmanagers/:name         stop one, whoever started it: it stays away
PATCH  /headwater/taskmanagers {"respawn"}   false: one that is lost from now on is left lost
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.rest.errors import BadRequest
from engine.rest.model.resources import LocalResources
from engine.rest.parsing import body_of, service_of

PATH = "/headwater/taskmanagers"


async def local(request: Request) -> JSONResponse:
    """Which are wanted, and which of them run."""
    return JSONResponse(_body(await service_of(request).local_task_managers()))


async def start(request: Request) -> JSONResponse:
    """Start one more, or a lost one again."""
    wanted = (await body_of(request)).text("name")
    name = await service_of(request).start_task_manager(wanted)
    return JSONResponse({"name": name}, status_code=202)


async def respawn(request: Request) -> JSONResponse:
    """Whether lost ones are started again."""
    body = await body_of(request)
    if body.fields.get("respawn") is None:
        msg = "field respawn is missing from the request body; pass true or false"
        raise BadRequest(msg)
    service = service_of(request)
    await service.leave_lost_task_managers(not body.flag("respawn"))
    return JSONResponse(_body(await service.local_task_managers()))


async def stop(request: Request) -> JSONResponse:
    """End one; jobs that ran there go on elsewhere, or wait for slots."""
    await service_of(request).stop_task_manager(str(request.path_params["name"]))
    return JSONResponse({}, status_code=202)


def _body(found: LocalResources) -> dict[str, object]:
    managers = [
        {"name": one.name, "state": "LOST" if one.pid is None else "RUNNING", "pid": one.pid}
        for one in found.task_managers
    ]
    return {"respawn": found.respawn, "taskmanagers": managers}


ROUTES = (
    Route(PATH, local),
    Route(PATH, start, methods=["POST"]),
    Route(PATH, respawn, methods=["PATCH"]),
    Route(PATH + "/{name}", stop, methods=["DELETE"]),
)
