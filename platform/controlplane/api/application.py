"""The API as one object: its routes, who may ask, how errors are told."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from controlplane.api.auth import AUTH
from controlplane.api.keys import FIELD, READING, claim, keep
from controlplane.api.problems import no_route, tell_problems
from controlplane.api.routes import (
    alerts,
    audit,
    clusters,
    events,
    figures,
    graph,
    jobs,
    operations,
    people,
    policies,
    replays,
    running,
    runs,
    savepoints,
    schedules,
    storage,
    teams,
    tokens,
    users,
    versions,
)

VERSION = "1"


class Api(NinjaAPI):
    """Names its operations as their functions are called."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """`jobs_start`; clients that are generated have methods of these names."""
        return f"{(operation.tags or ['api'])[0]}_{operation.view_func.__name__}"

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        """With the header that every call that changes something takes."""
        told = super().get_openapi_schema(**options)
        for methods in told["paths"].values():
            for method, call in methods.items():
                if method.upper() not in READING:
                    call.setdefault("parameters", []).append(FIELD)
        return told


api = Api(
    title="Headwater",
    version=VERSION,
    description=(
        "What the dashboard can do, for programs. Send `Authorization: Bearer TOKEN`. Errors are "
        "problem details (RFC 9457). What takes long answers 202 with an operation to follow."
    ),
    docs_url=None,
    docs_decorator=require_safe,
    auth=AUTH,
)
tell_problems(api)
api.add_decorator(claim, mode="operation")
api.add_decorator(keep, mode="view")
for subject in (
    people,
    jobs,
    running,
    versions,
    runs,
    graph,
    figures,
    events,
    operations,
    savepoints,
    storage,
    schedules,
    policies,
    replays,
    alerts,
    clusters,
    teams,
    users,
    tokens,
    audit,
):
    api.add_router("", subject.router)


@require_safe
def root(request: HttpRequest) -> HttpResponse:
    """Where to look."""
    return JsonResponse({"version": VERSION, "openapi": f"{request.path}openapi.json"})


_patterns, _app, _namespace = api.urls
urls = (
    [
        path("", root, name="api-root"),
        *(one for one in _patterns if getattr(one, "name", "") != "api-root"),
        path("<path:rest>", csrf_exempt(no_route), name="no-route"),
    ],
    _app,
    _namespace,
)
