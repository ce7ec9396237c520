"""Headwater's engine: stateful stream processing with event time and exactly-once snapshots.

    import engine as hw
    from engine import agg, windows

What a job file needs is here; it is loaded when it is first used, so that programs that only speak
to an engine do not pay for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine import aggregates as agg
    from engine import evictors, triggers, windows
    from engine.functions import (
        AggregateFunction,
        AggregatingState,
        BroadcastState,
        CoProcessFunction,
        FunctionContext,
        KeyedBroadcastProcessFunction,
        KeyedProcessFunction,
        ListState,
        MapState,
        ProcessFunction,
        ReducingState,
        Ttl,
        ValueState,
    )
    from engine.operators.windows.rows import WindowContext
    from engine.stream import Environment, Stream
    from engine.watermarks import (
        WatermarkGenerator,
        bounded_out_of_orderness,
        custom_watermarks,
        monotonic,
    )

__all__ = [
    "AggregateFunction",
    "AggregatingState",
    "BroadcastState",
    "CoProcessFunction",
    "Environment",
    "FunctionContext",
    "KeyedBroadcastProcessFunction",
    "KeyedProcessFunction",
    "ListState",
    "MapState",
    "ProcessFunction",
    "ReducingState",
    "Stream",
    "Ttl",
    "ValueState",
    "WatermarkGenerator",
    "WindowContext",
    "agg",
    "bounded_out_of_orderness",
    "custom_watermarks",
    "evictors",
    "monotonic",
    "triggers",
    "windows",
]

_HOMES = {
    "AggregateFunction": "engine.functions",
    "AggregatingState": "engine.functions",
    "BroadcastState": "engine.functions",
    "CoProcessFunction": "engine.functions",
    "Environment": "engine.stream",
    "FunctionContext": "engine.functions",
    "KeyedBroadcastProcessFunction": "engine.functions",
    "KeyedProcessFunction": "engine.functions",
    "ListState": "engine.functions",
    "MapState": "engine.functions",
    "ProcessFunction": "engine.functions",
    "ReducingState": "engine.functions",
    "Stream": "engine.stream",
    "Ttl": "engine.functions",
    "ValueState": "engine.functions",
    "WatermarkGenerator": "engine.watermarks",
    "WindowContext": "engine.operators.windows.rows",
    "bounded_out_of_orderness": "engine.watermarks",
    "custom_watermarks": "engine.watermarks",
    "monotonic": "engine.watermarks",
}
_MODULES = {
    "agg": "engine.aggregates",
    "evictors": "engine.evictors",
    "triggers": "engine.triggers",
    "windows": "engine.windows",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first asked for."""
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    msg = f"module 'engine' has no attribute {name!r}"
    raise AttributeError(msg)
