"""How asynchronous functions are used: what is checked when the graph is built.

Errors   GraphError for a function that is not asynchronous, ConfigError for a length of time that
         is none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from engine.durations import Duration, parse_duration
from engine.elements import Micros
from engine.errors import GraphError
from engine.operators.asking.map_async import NUMBER, Asking
from engine.operators.expressions import Schema


def checked_asking(
    function: object,
    schema: Schema,
    *,
    capacity: int,
    timeout: Duration | None,
    ordered: bool,
    rows_per_call: int | None,
    retries: int,
    retry_after: Duration,
    on_timeout: Callable[[Any], object] | None,
) -> Asking:
    """Look at what an author wants of `map_async`. Raises GraphError, ConfigError."""
    call = getattr(function, "__call__", None)  # noqa: B004  it is looked at, not called
    if not inspect.iscoroutinefunction(function) and not inspect.iscoroutinefunction(call):
        shown = getattr(function, "__name__", function)
        msg = f"map_async needs an asynchronous function: got {shown!r}; write async def"
        raise GraphError(msg)
    if NUMBER in schema:
        msg = f"map_async keeps rows with a column {NUMBER!r} of its own; rename that of the stream"
        raise GraphError(msg)
    for name, value, least in (
        ("capacity", capacity, 1),
        ("rows_per_call", rows_per_call, 1),
        ("retries", retries, 0),
    ):
        if value is not None and (not isinstance(value, int) or value < least):
            msg = f"{name} of map_async is out of range: got {value!r}; pass {least} or more"
            raise GraphError(msg)
    if on_timeout is not None and timeout is None:
        msg = "map_async has on_timeout but no timeout; pass timeout='1s'"
        raise GraphError(msg)
    return Asking(
        capacity=capacity,
        timeout=None if timeout is None else _positive(timeout, "timeout"),
        ordered=ordered,
        rows_per_call=rows_per_call,
        retries=retries,
        retry_after=parse_duration(retry_after, "retry_after"),
        on_timeout=on_timeout,
    )


def _positive(length: Duration, name: str) -> Micros:
    micros = parse_duration(length, name)
    if micros <= 0:
        msg = f"{name} of map_async must be positive: got {length!r}; pass e.g. '1s'"
        raise GraphError(msg)
    return micros
