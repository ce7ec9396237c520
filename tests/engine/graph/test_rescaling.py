"""Another parallelism for a graph that was built already."""

from __future__ import annotations

import polars as pl
import pytest

from engine.errors import ConfigError
from engine.graph.jobgraph import JobGraph, Partitioning
from engine.graph.plan import plan_of
from engine.graph.rescaling import of_all, parallelism_of, rescaled_graph, rescaled_plan
from engine.runtime.wiring import wire
from engine.stream import Environment
from engine.testing.memory import MemorySource, OutputTables

ROWS = pl.DataFrame({"n": [1], "k": [2]})


def job(parallelism: int, forward: bool = False) -> JobGraph:
    """A source, a step apart with one subtask, and a sink behind a shuffle."""
    env = Environment("job", parallelism=parallelism, max_parallelism=8)
    rows = env.source(MemorySource({"a": ROWS}), uid="rows")
    if forward:
        env.disable_chaining()
        rows = rows.forward().filter(pl.col("n") > 0, uid="positive")
    rows.filter(pl.col("n") > 1, uid="alone", parallelism=1).sink(OutputTables().sink("x"), uid="x")
    return env.graph()


def test_what_most_vertices_have_changes_and_what_was_chosen_apart_stays():
    plan = plan_of(job(2))
    assert parallelism_of(plan) == {"rows": 2, "alone": 1, "x": 2}
    assert of_all(plan, 4) == {"rows": 4, "alone": 1, "x": 4}


def test_graph_and_plan_change_alike_and_keep_chains_edges_and_hash():
    graph = job(2)
    wanted = {"rows": 5, "alone": 3}
    changed = rescaled_graph(graph, wanted)
    plan = rescaled_plan(plan_of(graph), wanted)
    assert plan_of(changed) == plan
    assert parallelism_of(plan) == {"rows": 5, "alone": 3, "x": 2}
    assert changed.edges == graph.edges
    assert plan.hash == plan_of(graph).hash
    assert len(wire(changed, "j", "a").specs) == 10


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"rows": 0}, "parallelism of 'rows' is out of range: got 0; pass 1 to 8"),
        ({"x": 9}, "parallelism of 'x' is out of range: got 9; pass 1 to 8"),
        ({"nobody": 2}, "'nobody' heads no vertex of the job: it has rows, alone, x"),
    ],
)
def test_what_a_job_cannot_run_at_is_refused(wanted, sentence):
    with pytest.raises(ConfigError, match=sentence):
        rescaled_plan(plan_of(job(2)), wanted)


def test_rows_that_pass_forward_need_the_same_parallelism_at_both_ends():
    plan = plan_of(job(2, forward=True))
    assert Partitioning.FORWARD in {edge.partitioning for edge in plan.edges}
    rescaled_plan(plan, {"rows": 3, "positive": 3})
    with pytest.raises(
        ConfigError, match="takes rows forward from 'rows': got parallelism 2 and 3"
    ):
        rescaled_plan(plan, {"rows": 3})
