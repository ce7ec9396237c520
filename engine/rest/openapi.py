"""The OpenAPI document of the whole interface, made of its routes and of the types of their JSON.

    routes (path, methods, docstrings) + described.py (types) ─▶ OpenAPI 3.1

Shapes   every path is served bare and under /v1: those are the two servers of the document.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

from starlette.routing import Route

from engine.rest.described import DESCRIBED, Described
from engine.rest.schema.jobs import Errors
from engine.rest.schema.json_schema import Schema, schema_of
from engine.version import VERSION

SERVERS = ("/", "/v1")

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The document of some routes."""
    known: dict[str, Schema] = {}
    refusal = {"description": "a refusal, one sentence", **_content(schema_of(Errors, known))}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        described = DESCRIBED.get(route.endpoint, Described(object))
        for method in sorted((route.methods or set()) - {"HEAD"}):
            path = paths.setdefault(_PARAMETER.sub(r"{\1}", route.path), {})
            path[method.lower()] = _operation(route, method, described, refusal, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headwater",
            "version": VERSION,
            "description": "Apache Flink's REST interface, and additions under /headwater.",
        },
        "servers": [{"url": url} for url in SERVERS],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(known.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # A token is needed only where the engine has one.
        "security": [{}, {"token": []}],
    }


def _operation(
    route: Route, method: str, described: Described, refusal: Schema, known: dict[str, Schema]
) -> dict[str, Any]:
    topic = route.endpoint.__module__.rpartition(".")[2]
    answer = _content(schema_of(described.answer, known), described.media_type)
    operation: dict[str, Any] = {
        "operationId": _operation_id(route, method, topic),
        "tags": [topic],
        "summary": (inspect.getdoc(route.endpoint) or "").split("\n", maxsplit=1)[0],
        "parameters": _parameters(route, described, known),
        "responses": {str(described.status): {"description": "done", **answer}, "default": refusal},
    }
    if described.uploads:
        file = {"type": "object", "properties": {"jarfile": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = _content(file, "multipart/form-data")
    elif described.body is not None and method != "GET":
        operation["requestBody"] = _content(schema_of(described.body, known))
    return operation


def _operation_id(route: Route, method: str, topic: str) -> str:
    """One name for each: an endpoint may have several paths and methods."""
    prefix = "" if method in ("GET", "POST") and len(route.methods or ()) < 3 else method.lower()
    where = "headwater_" if route.path.startswith("/headwater") else ""
    return "_".join(part for part in (where + topic, prefix, route.endpoint.__name__) if part)


def _parameters(
    route: Route, described: Described, known: dict[str, Schema]
) -> list[dict[str, Any]]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(route.path)
    ]
    in_query = [
        {"name": name, "in": "query", "required": False, "schema": schema_of(kind, known)}
        for name, kind in described.query.items()
    ]
    return [*in_path, *in_query]


def _content(schema: Schema, media_type: str = "application/json") -> dict[str, Any]:
    return {"content": {media_type: {"schema": schema}}}
