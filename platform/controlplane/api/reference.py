"""The API's own description, in the shape of a page: subjects, calls, and what they take and give.

Source   `/api/v1/openapi.json`, OpenAPI 3.1; so a page never says anything else than the API does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from controlplane.api.application import api

TAKEN = ("In", "Change", "Reason", "Params")
"""How shapes are called that calls take and never give."""


@dataclass(frozen=True, slots=True)
class Field:
    """One value that is sent or told."""

    name: str
    place: str
    """path, query, header, body or form; empty in a shape."""
    type: str
    required: bool
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """One thing that can be asked."""

    id: str
    method: str
    path: str
    title: str
    text: str
    fields: tuple[Field, ...]
    status: str
    gives: str
    """Name of a shape, `list of` one, or nothing."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Something that calls take or give."""

    name: str
    text: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """The whole API."""

    text: str
    subjects: tuple[tuple[str, tuple[Call, ...]], ...]
    shapes: tuple[Shape, ...]


@cache
def reference() -> Reference:
    """The same for everybody, made once."""
    told: Mapping[str, Any] = api.get_openapi_schema()
    schemas: Mapping[str, Any] = told["components"]["schemas"]
    subjects: dict[str, list[Call]] = {}
    for path, methods in told["paths"].items():
        for method, call in methods.items():
            subjects.setdefault(call["tags"][0], []).append(_call(path, method, call, schemas))
    shapes = [
        Shape(_shape(name), schema.get("description", ""), tuple(_members(schema, "")))
        for name, schema in sorted(schemas.items())
        if not name.startswith("Page_") and not name.endswith(TAKEN)
    ]
    pairs = tuple((subject, tuple(calls)) for subject, calls in subjects.items())
    return Reference(told["info"]["description"], pairs, tuple(shapes))


def _call(path: str, method: str, call: Mapping[str, Any], schemas: Mapping[str, Any]) -> Call:
    fields = [
        Field(
            one["name"],
            one["in"],
            _type(one["schema"]),
            one.get("required", False),
            one["schema"].get("description", ""),
        )
        for one in call.get("parameters", [])
    ]
    for kind, content in call.get("requestBody", {}).get("content", {}).items():
        schema = _resolved(content["schema"], schemas)
        fields += _members(schema, "body" if kind == "application/json" else "form")
    status, answer = next(iter(call["responses"].items()))
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    return Call(
        id=call["operationId"],
        method=method.upper(),
        path=path,
        title=call["summary"],
        text=call["description"],
        fields=tuple(fields),
        status=str(status),
        gives=_type(schema) if schema else "",
    )


def _members(schema: Mapping[str, Any], place: str) -> Iterator[Field]:
    required = set(schema.get("required", ()))
    for name, one in schema.get("properties", {}).items():
        yield Field(name, place, _type(one), name in required, one.get("description", ""))


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    ref = schema.get("$ref", "")
    found: Mapping[str, Any] = schemas[ref.rpartition("/")[2]] if ref else schema
    return found


def _type(schema: Mapping[str, Any]) -> str:
    """A type in a few words."""
    if ref := schema.get("$ref", ""):
        return _shape(ref.rpartition("/")[2])
    if choices := schema.get("anyOf"):
        return " or ".join(_type(one) for one in choices)
    if allowed := schema.get("enum"):
        return ", ".join(str(one) for one in allowed if one)
    kind = str(schema.get("type", "object"))
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format", kind))


def _shape(name: str) -> str:
    """`Page_JobOut_` is a page of Job."""
    if name.startswith("Page_"):
        return f"page of {_shape(name.removeprefix('Page_').rstrip('_'))}"
    return name.removesuffix("Out")
