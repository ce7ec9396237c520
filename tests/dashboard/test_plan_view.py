"""A plan as the graph draws it."""

from __future__ import annotations

import pytest

from controlplane.jobs.plan_view import chain_names, plan_view


@pytest.mark.parametrize(
    ("description", "names"),
    [
        ("flights<br/>+- daily.partial<br/>", ("flights", "daily.partial")),
        ("Source: orders -&gt; Map", ("orders", "Map")),
        ("Source: orders<br/>:- Map<br/>+- Sink: files<br/>", ("orders", "Map", "files")),
        ("a → b", ("a", "b")),
        ("", ("",)),
    ],
)
def test_a_chain_is_read_from_what_the_engine_writes(description, names):
    assert chain_names(description) == names


def test_kinds_follow_from_the_place_in_the_flow():
    view = plan_view(
        {
            "nodes": [
                {"id": "s", "description": "orders"},
                {"id": "w", "description": "hourly window", "inputs": [{"id": "s"}]},
                {"id": "k", "description": "files", "inputs": [{"id": "w"}]},
            ]
        }
    )
    assert [node.kind for node in view.nodes] == ["source", "window", "sink"]


def test_a_run_without_a_plan_has_an_empty_graph():
    assert plan_view({}).nodes == ()
