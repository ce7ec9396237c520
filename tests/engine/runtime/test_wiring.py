"""The channels of a whole job."""

from __future__ import annotations

import pytest

from engine.errors import GraphError
from engine.graph.jobgraph import JobEdge, JobGraph, JobVertex, Partitioning, TaskId
from engine.runtime.wiring import Wiring, wire


def vertex(id_: str, parallelism: int) -> JobVertex:
    return JobVertex(id_, id_, parallelism, ())


def wired(source: int, target: int, partitioning: Partitioning) -> Wiring:
    edge = JobEdge("a", 0, "b", partitioning)
    graph = JobGraph("job", 128, (vertex("a", source), vertex("b", target)), (edge,))
    return wire(graph, "job", "attempt")


def test_a_shuffle_connects_every_subtask_with_every_other() -> None:
    wiring = wired(2, 3, Partitioning.HASH)
    assert wiring.specs[TaskId("a", 1)].outputs[0].channels == (0, 1, 2)
    assert wiring.specs[TaskId("b", 2)].inputs == (0, 0)
    assert wiring.routes[TaskId("a", 1), 2] == (TaskId("b", 2), 1)
    assert len(set(wiring.routes.values())) == len(wiring.routes) == 6


@pytest.mark.parametrize(
    ("source", "target", "shares"),
    [
        (2, 5, [[0, 1], [2, 3, 4]]),
        (5, 2, [[0], [0], [0], [1], [1]]),
        (3, 3, [[0], [1], [2]]),
        (1, 2, [[0, 1]]),
    ],
)
def test_a_rescale_connects_each_subtask_with_its_share(
    source: int, target: int, shares: list[list[int]]
) -> None:
    wiring = wired(source, target, Partitioning.RESCALE)
    found: list[list[int]] = [[] for _ in range(source)]
    for (task, _), (to, _) in wiring.routes.items():
        found[task.subtask].append(to.subtask)
    assert found == shares


def test_a_forward_edge_connects_equal_subtasks() -> None:
    wiring = wired(2, 2, Partitioning.FORWARD)
    assert wiring.routes == {
        (TaskId("a", 0), 0): (TaskId("b", 0), 0),
        (TaskId("a", 1), 0): (TaskId("b", 1), 0),
    }


def test_a_forward_edge_between_unequal_vertices_is_refused() -> None:
    with pytest.raises(GraphError, match="parallelism 2 meets 3; use rebalance"):
        wired(2, 3, Partitioning.FORWARD)


def test_channels_know_the_port_they_feed() -> None:
    edges = (
        JobEdge("a", 0, "c", Partitioning.HASH, port=0),
        JobEdge("b", 0, "c", Partitioning.HASH, port=1),
    )
    vertices = (vertex("a", 2), vertex("b", 1), vertex("c", 1))
    wiring = wire(JobGraph("job", 128, vertices, edges), "job", "attempt")
    assert wiring.specs[TaskId("c", 0)].inputs == (0, 0, 1)
    assert wiring.routes[TaskId("b", 0), 0] == (TaskId("c", 0), 2)


def test_several_edges_of_one_vertex_have_channels_of_their_own() -> None:
    edges = (
        JobEdge("a", 0, "b", Partitioning.REBALANCE),
        JobEdge("a", 0, "c", Partitioning.HASH, tag="late"),
    )
    vertices = (vertex("a", 1), vertex("b", 2), vertex("c", 2))
    wiring = wire(JobGraph("job", 128, vertices, edges), "job", "attempt")
    outputs = wiring.specs[TaskId("a", 0)].outputs
    assert [output.channels for output in outputs] == [(0, 1), (2, 3)]


@pytest.mark.parametrize(
    ("partitioning", "keyed"), [(Partitioning.HASH, True), (Partitioning.REBALANCE, False)]
)
def test_only_a_shuffle_by_key_makes_a_vertex_keyed(
    partitioning: Partitioning, keyed: bool
) -> None:
    assert wired(2, 2, partitioning).specs[TaskId("b", 0)].keyed is keyed
