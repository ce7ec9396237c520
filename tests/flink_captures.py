"""Recorded answers of Apache Flink, and a comparison of shapes with them.

A shape is what a client's parser meets: the paths of a document and the JSON types found there.
Keys that are ids or numbers of subtasks are one wildcard, elements of a list are one element.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "fixtures" / "flink"

REQUESTS: dict[str, tuple[str, str, int]] = {
    name: tuple(request)
    for name, request in json.loads((FOLDER / "requests.json").read_text()).items()
}
"""Capture to the method, path and status code of its request."""

OURS = "headwater"

_ID = re.compile(r"[0-9a-f]{32}")


def capture(name: str) -> Any:
    """A recorded body."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def shape(document: object) -> dict[str, set[str]]:
    """Paths of a document to the types found at them."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    _walk(document, "$", found)
    return dict(found)


def differences(ours: object, flinks: object) -> set[str]:
    """What a parser of Flink's document would stumble over in ours, or not find, or find new.

    What we add under a key `headwater` is left out: Flink's parsers ignore keys they do not know.
    """
    mine, theirs = shape(ours), shape(flinks)
    missing = {f"missing {path}" for path in theirs.keys() - mine.keys()}
    extra = {f"extra {path}" for path in mine.keys() - theirs.keys()}
    both = mine.keys() & theirs.keys()
    other = {
        f"type {path}: {'|'.join(sorted(mine[path]))}" for path in both if mine[path] - theirs[path]
    }
    return missing | extra | other


def _walk(value: object, path: str, found: defaultdict[str, set[str]]) -> None:
    found[path].add(_type(value))
    match value:
        case dict():
            for key, inner in value.items():
                if key == OURS:
                    continue
                _walk(inner, f"{path}.{'*' if _ID.fullmatch(key) else key}", found)
        case list():
            for inner in value:
                _walk(inner, f"{path}[]", found)


def _type(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case None:
            return "null"
        case dict():
            return "object"
        case _:
            return "array"
