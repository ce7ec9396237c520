"""Record functions with keyed state: what a job's author writes when columns are not enough.

states.py     what a function remembers per key: ValueState, ListState, MapState, …
ttl.py        how long
process.py    the functions: process, on_timer, two inputs, a broadcast one
context.py    what a method sees besides its row: key, time, timers, side outputs
bound.py      states while a function runs
"""

from __future__ import annotations

from engine.functions.context import FunctionContext
from engine.functions.process import (
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    Row,
    Rows,
    StatefulFunction,
    states_of,
)
from engine.functions.states import (
    AggregateFunction,
    AggregatingState,
    BroadcastState,
    ListState,
    MapState,
    ReducingState,
    State,
    ValueState,
)
from engine.functions.ttl import TimeDomain, Ttl

__all__ = [
    "AggregateFunction",
    "AggregatingState",
    "BroadcastState",
    "CoProcessFunction",
    "FunctionContext",
    "KeyedBroadcastProcessFunction",
    "KeyedProcessFunction",
    "ListState",
    "MapState",
    "ProcessFunction",
    "ReducingState",
    "Row",
    "Rows",
    "State",
    "StatefulFunction",
    "TimeDomain",
    "Ttl",
    "ValueState",
    "states_of",
]
