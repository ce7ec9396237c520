"""What is said to hold a job back, and when it is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.backends.sightings import JobSighting, VertexSighting
from controlplane.collector.diagnosis import LOOKS, HeldBack, culprit, sentence

PLAN = {
    "nodes": [
        {"id": "a", "operators": ["Source: orders", "parse"], "inputs": []},
        {"id": "b", "operators": ["enrich"], "inputs": [{"id": "a"}]},
        {"id": "c", "operators": ["sink"], "inputs": [{"id": "b"}]},
    ]
}


def vertex(name: str, busy: float | None, waiting: float | None) -> VertexSighting:
    return VertexSighting(
        id=name, state="RUNNING", parallelism=4, running=4, in_rate=1.0, out_rate=1.0, busy=busy,
        backpressured=waiting, idle=0.0, watermark_ms=None, is_source=False, is_sink=False,
    )  # fmt: skip


def job(*loads: tuple[float | None, float | None]) -> JobSighting:
    vertices = tuple(vertex(name, *load) for name, load in zip("abc", loads, strict=True))
    return JobSighting(
        id="1", state="RUNNING", since_ms=0, waiting_for="", uptime_ms=0, restarts=0, plan=PLAN,
        vertices=vertices, checkpoints=(), completed=None, failures=(), event_ms=None,
        newest_ms=None, pending_rows=None,
    )  # fmt: skip


HELD = job((20, 71), (98, 0), (30, 0))
FREE = job((20, 0), (40, 0), (30, 0))


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (HELD, "b"),
        (FREE, None),
        (job((20, 71), (10, 85), (97, 0)), "c"),  # the one that waits itself is not to blame
        (job((20, 50), (98, 0), (30, 0)), None),
        (job((20, 51), (60, 0), (30, 0)), "b"),
        (job((20, 51), (59, 0), (30, 0)), None),
        (job((None, None), (None, None), (None, None)), None),
    ],
)
def test_the_busy_one_behind_those_that_wait_is_to_blame(seen, found):
    blamed = culprit(seen)
    assert (blamed.id if blamed else None) == found


def test_it_is_said_after_five_looks_and_until_five_disagree():
    opinion = HeldBack()
    before = [opinion.tell(HELD) for _ in range(LOOKS)]
    assert before[:-1] == [None] * (LOOKS - 1)
    assert before[-1]["vertex"] == "b"
    after = [opinion.tell(FREE) for _ in range(LOOKS)]
    assert [told is None for told in after] == [False] * (LOOKS - 1) + [True]


def test_one_unlucky_look_changes_nothing():
    opinion = HeldBack()
    for _ in range(LOOKS):
        opinion.tell(HELD)
    assert opinion.tell(FREE) is not None
    assert opinion.tell(HELD) is not None


def test_the_sentence_names_who_waits_and_a_skew():
    held_by = replace(HELD.vertices[1], skew=4.1)
    assert sentence(HELD, held_by) == (
        "held back by enrich, for which Source: orders waits; "
        "one of its subtasks takes about 4 times the mean"
    )


def test_a_vertex_that_has_gone_with_its_plan_is_no_longer_said():
    opinion = HeldBack()
    for _ in range(LOOKS):
        opinion.tell(HELD)
    assert opinion.tell(replace(HELD, vertices=())) is None
