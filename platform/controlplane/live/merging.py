"""How the value of a topic lies in a hash or a list, and what a merge into it changes. Pure.

record    {field: JSON}           table    {row ␟ column: JSON}           log    [JSON, …]
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from controlplane.live.topics import Payload, Shape, Topic

_SEPARATOR = "\x1f"

Held = Mapping[bytes, bytes]


def difference(topic: Topic, held: Held, value: Payload) -> tuple[dict[str, bytes], list[bytes]]:
    """Fields to set and fields to drop, so that what is held has `value` merged in."""
    wanted = _encode(topic, value)
    changed = {name: raw for name, raw in wanted.items() if held.get(name.encode()) != raw}
    gone = _gone_rows(topic, value)
    return changed, [name for name in held if _row(name) in gone] if gone else []


def dump(value: object) -> bytes:
    """JSON, as short as it goes."""
    # NaN is no JSON: a browser could not read the whole message for it.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _encode(topic: Topic, value: Payload) -> dict[str, bytes]:
    """The hash fields that hold `value`."""
    if topic.shape is Shape.RECORD:
        return {name: dump(one) for name, one in value.items()}
    return {
        f"{row}{_SEPARATOR}{name}": dump(one)
        for row, columns in value.items()
        if columns is not None
        for name, one in columns.items()
    }


def _gone_rows(topic: Topic, value: Payload) -> set[str]:
    if topic.shape is not Shape.TABLE:
        return set()
    return {row for row, columns in value.items() if columns is None}


def _row(name: bytes) -> str:
    return name.decode().partition(_SEPARATOR)[0]


def patch_of(topic: Topic, changed: dict[str, bytes], dropped: list[bytes]) -> Payload:
    """What listeners merge in."""
    patch = _decode(topic, {name.encode(): raw for name, raw in changed.items()})
    return patch | dict.fromkeys(_row(name) for name in dropped)


def value_of(topic: Topic, held: Held | list[bytes]) -> Payload:
    """What is held, as a whole."""
    if topic.shape is Shape.LOG:
        return {"events": [json.loads(raw) for raw in held]}
    return _decode(topic, cast("Held", held))


def _decode(topic: Topic, held: Held) -> Payload:
    if topic.shape is Shape.RECORD:
        return {name.decode(): json.loads(raw) for name, raw in held.items()}
    table: Payload = {}
    for name, raw in held.items():
        row, _, column = name.decode().partition(_SEPARATOR)
        table.setdefault(row, {})[column] = json.loads(raw)
    return table
