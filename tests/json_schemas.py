"""A check of documents against JSON Schema: of the words that our OpenAPI document uses, all.

A word that is not known here raises, so that nothing passes unseen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

PREFIX = "#/components/schemas/"

TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}

Schema = Mapping[str, Any]


def problems(
    value: Any, schema: Schema, known: Mapping[str, Schema], *, strict: bool, path: str = "$"
) -> Iterator[str]:
    """What is wrong with a document; `strict`: also what the schema does not tell of."""
    match schema:
        case {"$ref": str(name), **more}:
            inner = known[name.removeprefix(PREFIX)]
            yield from problems(value, inner, known, strict=strict, path=path)
        case {"anyOf": list(options), **more}:
            found = [
                list(problems(value, each, known, strict=strict, path=path)) for each in options
            ]
            if all(found):
                yield min(found, key=len)[0]
        case {"type": str(name), **more}:
            yield from _typed(value, name, dict(more), known, strict, path)
            more = {}
        case _:
            more = dict(schema)
    assert not more, f"words of a schema that are not known here: {more}"


def _typed(
    value: Any,
    name: str,
    more: dict[str, Any],
    known: Mapping[str, Schema],
    strict: bool,
    path: str,
) -> Iterator[str]:
    mixed_up = isinstance(value, bool) and name != "boolean"
    if mixed_up or not isinstance(value, TYPES[name]):
        yield f"{path} is no {name}: {value!r:.60}"
        return
    if "enum" in more and value not in more.pop("enum"):
        yield f"{path} is none of those that are told: {value!r}"
    items, others = more.pop("items", None), more.pop("additionalProperties", None)
    for at, part in enumerate(value if items is not None else ()):
        yield from problems(part, items, known, strict=strict, path=f"{path}[{at}]")
    properties = more.pop("properties", None)
    yield from (
        f"{path}.{need} is missing" for need in more.pop("required", ()) if need not in value
    )
    assert not more, f"words of a schema that are not known here: {more}"
    if properties is None and others is None:
        return
    for key, part in value.items():
        inner = (properties or {}).get(key, others)
        if inner is not None:
            yield from problems(part, inner, known, strict=strict, path=f"{path}.{key}")
        elif strict:
            yield f"{path}.{key} is not told of"
