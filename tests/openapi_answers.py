"""The OpenAPI document of the engine, and a comparison of answers with it."""

from __future__ import annotations

from typing import Any

import httpx

from engine.rest.app import create_app
from engine.testing.fake_service import FakeService
from json_schemas import problems

APP = create_app(FakeService())
DOCUMENT: dict[str, Any] = APP.state.openapi()
KNOWN = DOCUMENT["components"]["schemas"]


def told(path: str, method: str) -> dict[str, Any]:
    """What the document says of a path with its names filled in."""
    parts = path.partition("?")[0].removeprefix("/v1").strip("/").split("/")
    fitting = []
    for known, operations in DOCUMENT["paths"].items():
        names = known.strip("/").split("/")
        pairs = list(zip(names, parts, strict=False))
        if len(names) == len(parts) and all(n.startswith("{") or n == p for n, p in pairs):
            fitting.append((sum(n == p for n, p in pairs), operations))
    _, operations = max(fitting, key=lambda found: found[0])
    found: dict[str, Any] = operations[method.lower()]
    return found


def answered(
    operation: dict[str, Any], answer: httpx.Response, *, strict: bool = True
) -> list[str]:
    """What is wrong with an answer."""
    content = operation["responses"][str(answer.status_code)]["content"]["application/json"]
    return list(problems(answer.json(), content["schema"], KNOWN, strict=strict))
