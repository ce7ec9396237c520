"""Which subtask has the value of a key: that which a snapshot says has its key group."""

from __future__ import annotations

import polars as pl
import pytest

from engine.checkpoint.format.entries import OperatorEntry, StateEntry
from engine.checkpoint.inspection.plain_values import plain
from engine.checkpoint.inspection.reading import open_snapshot
from engine.cluster.answers.state_address import address
from engine.elements import KEY_GROUP
from engine.errors import UserError
from engine.graph.plan import plan_of
from engine.keygroups import range_of
from engine.rest.errors import BadRequest, NotFound, RestError
from engine.rest.model.states import StateQuery
from engine.state.lookup import WITH_VALUES
from engine.testing.memory import OutputTables
from fixtures.every_kind_job import every_kind_job
from golden_snapshots import formats, snapshots

PARALLELISM = 3
PLAN = plan_of(every_kind_job(PARALLELISM, OutputTables()))
SNAPSHOT = open_snapshot(str(snapshots(formats()[0])[0]))
STATES = [(entry, state) for entry, state in SNAPSHOT.states() if state.kind in WITH_VALUES]


@pytest.mark.parametrize(
    ("entry", "state"), STATES, ids=[f"{entry.uid}, {state.name}" for entry, state in STATES]
)
def test_a_key_is_asked_for_where_its_group_is(entry: OperatorEntry, state: StateEntry) -> None:
    table = SNAPSHOT.collect(SNAPSHOT.scan(state))
    for row in table.select(KEY_GROUP, *state.keys).unique().iter_rows(named=True):
        key = {name: str(plain(row[name])) for name in state.keys}
        at = address(PLAN, StateQuery(entry.uid, state.name, key))
        assert at.group == row[KEY_GROUP]
        assert at.group in range_of(at.subtask, PARALLELISM, PLAN.max_parallelism)


def test_a_key_of_one_column_needs_no_name() -> None:
    by_name = address(PLAN, StateQuery("priced", "orders", {"user": "a1"}))
    assert address(PLAN, StateQuery("priced", "orders", {"": "a1"})) == by_name


@pytest.mark.parametrize(
    ("query", "kind", "sentence"),
    [
        (StateQuery("none", "n", {}), NotFound, "job has no operator 'none': those with state are"),
        (StateQuery("priced", "n", {}), NotFound, "operator 'priced' has no state 'n': it has "),
        (
            StateQuery("priced", "timers.event", {"user": "a1"}),
            BadRequest,
            "state 'timers.event' is of kind timers, where no key has a value; take a savepoint",
        ),
        (StateQuery("priced", "orders", {}), BadRequest, "is not whole: pass key.user=…"),
        (
            StateQuery("spans", "window.rows", {"": "a1"}),
            BadRequest,
            "pass key.user=…&key.pane.start=…",
        ),
        (StateQuery("priced", "prices", {"": "a1"}), BadRequest, "is not whole: pass no key"),
        (StateQuery("priced", "orders", {"user": "a1", "x": "1"}), UserError, "no key column 'x'"),
        (
            StateQuery("spans", "window.rows", {"user": "a1", "pane.start": "x", "pane.end": "1"}),
            UserError,
            "key column 'pane.start' is Int64: got 'x'; pass a value of this type",
        ),
    ],
)
def test_a_wrong_question_is_answered_in_one_sentence(
    query: StateQuery, kind: type[RestError | UserError], sentence: str
) -> None:
    with pytest.raises(kind) as refused:
        address(PLAN, query)
    assert sentence in str(refused.value)


def test_a_broadcast_state_is_asked_for_at_the_first_subtask() -> None:
    at = address(PLAN, StateQuery("priced", "prices", {}))
    assert (at.group, at.subtask) == (0, 0)
    assert pl.DataFrame(at.key).is_empty()
