"""The coordinator's half of watermark alignment."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.elements import MAX_TIME, MIN_TIME, Micros
from engine.graph.jobgraph import TaskId
from engine.runtime.watermark_groups import Aligned, WatermarkGroups, shared_groups


@dataclass(frozen=True)
class Vertex:
    id: str
    parallelism: int
    watermark_group: str | None


VERTICES = [
    Vertex("a", 2, "replay"),
    Vertex("b", 1, "replay"),
    Vertex("alone", 1, "source alone"),
    Vertex("sums", 3, None),
]
A0, A1, B = TaskId("a", 0), TaskId("a", 1), TaskId("b", 0)


def test_a_group_is_shared_when_it_has_more_than_one_subtask() -> None:
    assert shared_groups(VERTICES) == {"replay": [A0, A1, B]}


def test_nothing_is_told_before_every_member_has_reported() -> None:
    groups = WatermarkGroups(VERTICES)
    assert groups.report(A0, Micros(50)) is None
    assert groups.report(A1, Micros(70)) is None
    assert groups.report(B, Micros(60)) == Aligned("replay", Micros(50))


@pytest.mark.parametrize(
    ("member", "watermark", "told"),
    [
        (A1, 80, None),
        (A0, 65, 60),
        (A0, 40, 40),
        (A0, MAX_TIME, 60),
        (A0, MIN_TIME, MIN_TIME),
    ],
)
def test_the_group_hears_of_its_slowest_whenever_that_changes(
    member: TaskId, watermark: int, told: int | None
) -> None:
    groups = WatermarkGroups(VERTICES)
    for task, time in ((A0, 50), (A1, 70), (B, 60)):
        groups.report(task, Micros(time))
    news = groups.report(member, Micros(watermark))
    assert news == (None if told is None else Aligned("replay", Micros(told)))


@given(st.lists(st.tuples(st.sampled_from([A0, A1, B]), st.integers(-5, 5))))
def test_what_was_last_told_is_the_smallest_of_all_last_reports(
    reports: list[tuple[TaskId, int]],
) -> None:
    groups, last, told = (
        WatermarkGroups(VERTICES),
        {A0: MIN_TIME, A1: MIN_TIME, B: MIN_TIME},
        MIN_TIME,
    )
    for task, watermark in reports:
        last[task] = Micros(watermark)
        news = groups.report(task, Micros(watermark))
        told = told if news is None else news.lowest
        assert told == min(last.values())
