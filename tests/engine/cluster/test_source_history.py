"""Streaming statistics of a timeline made by hand."""

from __future__ import annotations

import pytest

from engine.cluster.jobs.source_history import KEPT_S, JobStatistics, SourceHistory, behind
from engine.graph.plan import EdgePlan, OperatorKind, OperatorPlan, Plan, VertexPlan
from engine.rest.model.statistics import BatchFigures, Delay
from engine.runtime.control import Metrics


def vertex(name: str, kind: OperatorKind) -> VertexPlan:
    return VertexPlan(name, name, 2, (OperatorPlan(name, name, kind, name),))


PLAN = Plan(
    name="two readers",
    max_parallelism=128,
    checkpoint_interval_ms=None,
    vertices=(
        vertex("a", OperatorKind.SOURCE),
        vertex("b", OperatorKind.SOURCE),
        vertex("windows", OperatorKind.TRANSFORM),
        vertex("files", OperatorKind.SINK),
    ),
    edges=(
        EdgePlan("a", "windows", "hash", 0),
        EdgePlan("windows", "files", "forward", 0),
        EdgePlan("b", "files", "rebalance", 0),
    ),
)


def report(busy: dict[str, int], batches: dict[str, dict[str, list[int]]] | None = None) -> Metrics:
    numbers = {task: {"busyTimeMsPerSecond": float(load)} for task, load in busy.items()}
    return Metrics(numbers, latencies={}, batches=batches or {})


def test_a_timeline_gives_exactly_these_figures():
    statistics = JobStatistics(PLAN)
    # Second 100: subtask 0 of "a" reads 10 + 30 rows, subtask 1 reads 20; "windows" is busiest.
    two = {"100": [2, 40, 3_000, 8_000, 2_000, 6_000, 7_000]}
    one = {"100": [1, 20, 0, 4_000, 0, 4_000, 4_000]}
    statistics.on_report(report({"a/0": 300, "windows/0": 100}, {"a/0": two}), 100)
    statistics.on_report(report({"a/1": 200, "windows/1": 500}, {"a/1": one}), 100)
    # Second 101: nothing is read. Second 102 is not told of yet.
    statistics.on_report(report({"a/0": 0, "windows/0": 250}), 101)

    (a, b) = statistics.statistics(now_s=103, window_s=2, step_s=1).sources

    assert a.series == (
        BatchFigures(3, 60, 60.0, Delay(1.0, 2.0), Delay(4.0, 6.0), Delay(5.0, 7.0), 2.0),
        BatchFigures(0, 0, 0.0, None, None, None, None),
    )
    # Over both seconds the busiest subtask works for 375 ms of each.
    assert a.summary == BatchFigures(
        3, 60, 30.0, Delay(1.0, 2.0), Delay(4.0, 6.0), Delay(5.0, 7.0), 1000 / 375
    )
    assert b.summary == BatchFigures(0, 0, 0.0, None, None, None, None)


def test_the_whole_job_sums_rows_and_has_the_least_headroom_of_its_sources():
    statistics = JobStatistics(PLAN)
    statistics.on_report(report({"a/0": 100}, {"a/0": {"7": [1, 5, 10, 20, 10, 20, 30]}}), 7)
    statistics.on_report(report({"b/0": 800}, {"b/0": {"7": [1, 7, 30, 40, 30, 40, 70]}}), 7)
    found = statistics.statistics(now_s=9, window_s=1, step_s=1)
    assert [source.summary.headroom for source in found.sources] == [10.0, 1.25]
    assert found.job.summary == BatchFigures(
        2, 12, 12.0, Delay(0.02, 0.03), Delay(0.03, 0.04), Delay(0.05, 0.07), 1.25
    )


def test_a_step_puts_seconds_together():
    statistics = JobStatistics(PLAN)
    for second in (10, 11, 12, 13):
        batches = {str(second): [1, second, 0, 1_000, 0, 1_000, 1_000]}
        statistics.on_report(report({"a/0": 500}, {"a/0": batches}), second)
    found = statistics.statistics(now_s=15, window_s=4, step_s=2)
    assert [step.rows for step in found.sources[0].series] == [21, 25]
    assert (found.from_ms, found.to_ms) == (10_000, 14_000)


def test_what_is_older_than_an_hour_is_forgotten_and_never_counts_as_new():
    history = SourceHistory()
    history.add(5, [1, 1, 0, 0, 0, 0, 0])
    history.add(5 + KEPT_S, [1, 2, 0, 0, 0, 0, 0])
    history.add(5, [1, 4, 0, 0, 0, 0, 0])  # a worker that slept
    assert history.lines(5, 6)[0, 2] == 0
    assert history.lines(5 + KEPT_S, 6 + KEPT_S)[0, 2] == 2


@pytest.mark.parametrize(
    ("source", "passed"), [("a", {"a", "windows", "files"}), ("b", {"b", "files"})]
)
def test_only_what_rows_of_a_source_pass_limits_it(source, passed):
    assert behind(source, PLAN) == passed
