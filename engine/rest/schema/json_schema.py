"""From types to JSON Schema.

    TypedDict ─▶ {"$ref": "#/components/schemas/<name>"}, and its definition among the known ones
    list, dict, unions, literals, enums, text, numbers, None ─▶ their schemas
    object ─▶ {}: anything

Errors   InternalError for a type that is none of these.
"""

from __future__ import annotations

from enum import StrEnum
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from engine.errors import InternalError

Schema = dict[str, Any]

PREFIX = "#/components/schemas/"

_PLAIN: dict[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    object: {},
}


def schema_of(kind: Any, known: dict[str, Schema]) -> Schema:
    """The schema of a type; definitions of objects are added to `known`.

    >>> schema_of(dict[str, list[int | None]], {})["additionalProperties"]["items"]
    {'anyOf': [{'type': 'integer'}, {'type': 'null'}]}
    """
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if is_typeddict(kind):
        return _object(kind, known)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is list:
        return {"type": "array", "items": schema_of(parts[0], known)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(parts[1], known)}
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(part, known) for part in parts]}
    if origin is Literal:
        return {"type": "string", "enum": list(parts)}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"type": "string", "enum": [str(value) for value in kind]}
    msg = f"type has no place in an answer: got {kind!r}; describe it with TypedDict"
    raise InternalError(msg)


def _object(kind: Any, known: dict[str, Schema]) -> Schema:
    name = str(kind.__name__)
    if name not in known:
        known[name] = {}  # first, as it may hold itself
        known[name] |= _definition(kind, known)
    return {"$ref": f"{PREFIX}{name}"}


def _definition(kind: Any, known: dict[str, Schema]) -> Schema:
    properties: dict[str, Schema] = {}
    required = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        optional = get_origin(hint) is NotRequired
        properties[name] = schema_of(get_args(hint)[0] if optional else hint, known)
        if not optional:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}
