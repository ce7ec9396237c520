"""Who has the value of a key: from the plan of a job alone.

    operator, state, key as text ──▶ key group ──▶ subtask

Errors   NotFound for what the job does not have, BadRequest and ConfigError for a wrong key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from engine.graph.jobgraph import Partitioning
from engine.graph.plan import OperatorPlan, Plan, StatePlan, VertexPlan
from engine.keygroups import key_groups, subtask_of
from engine.rest.errors import BadRequest, NotFound
from engine.rest.model.states import UNNAMED, StateQuery
from engine.state.contract import StateKind
from engine.state.key_text import parsed_key
from engine.state.lookup import WITH_VALUES
from engine.state.schema import type_named


@dataclass(frozen=True, slots=True)
class Address:
    """Who has the value of a key."""

    vertex: VertexPlan
    state: StatePlan
    group: int
    subtask: int
    key: Mapping[str, str]


def address(plan: Plan, query: StateQuery) -> Address:
    """Find the subtask that owns a key. Raises NotFound, BadRequest, ConfigError.

    Each key belongs to a key group by those of its columns that rows were partitioned by.
    """
    vertex, operator = _operator(plan, query.operator)
    state = _state(operator, query.state)
    if StateKind(state.kind) not in WITH_VALUES:
        msg = (
            f"state {state.name!r} is of kind {state.kind}, where no key has a value; take a "
            "savepoint and read that"
        )
        raise BadRequest(msg)
    types = {name: type_named(type_) for name, type_ in state.keys.items()}
    key = _named(state, query.key)
    parts = parsed_key(state.name, types, key)
    by = _partitioned_by(plan, vertex, state)
    group = 0 if not by else int(key_groups(pl.DataFrame(parts), by, plan.max_parallelism)[0])
    subtask = subtask_of(group, vertex.parallelism, plan.max_parallelism) if by else 0
    return Address(vertex, state, group, subtask, key)


def _operator(plan: Plan, uid: str) -> tuple[VertexPlan, OperatorPlan]:
    for vertex in plan.vertices:
        for operator in vertex.operators:
            if operator.uid == uid:
                return vertex, operator
    known = ", ".join(repr(one.uid) for one in plan.operators if one.states)
    msg = f"job has no operator {uid!r}: those with state are {known or 'none'}; pass one's uid"
    raise NotFound(msg)


def _state(operator: OperatorPlan, name: str) -> StatePlan:
    for state in operator.states:
        if state.name == name:
            return state
    known = ", ".join(repr(state.name) for state in operator.states)
    msg = f"operator {operator.uid!r} has no state {name!r}: it has {known or 'none'}; pass one"
    raise NotFound(msg)


def _named(state: StatePlan, given: Mapping[str, str]) -> Mapping[str, str]:
    """A whole key, all of its columns named."""
    if set(given) == {UNNAMED} and len(state.keys) == 1:
        given = dict.fromkeys(state.keys, given[UNNAMED])
    missing = [name for name in state.keys if name not in given]
    if missing or UNNAMED in given:
        parts = "&".join(f"key.{name}=…" for name in state.keys) or "no key"
        msg = f"key of state {state.name!r} is not whole: pass {parts}"
        raise BadRequest(msg)
    return given


def _partitioned_by(plan: Plan, vertex: VertexPlan, state: StatePlan) -> tuple[str, ...]:
    """Columns by which rows come to the subtasks; none when all of them, or one, have the state."""
    for edge in plan.edges:
        hashed = edge.target == vertex.id and edge.partitioning == Partitioning.HASH
        if hashed and set(edge.keys) <= set(state.keys):
            return edge.keys
    return ()
