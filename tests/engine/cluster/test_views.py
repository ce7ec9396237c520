"""What REST is told about a job's progress."""

from __future__ import annotations

import pytest

from engine.cluster.answers.views import source_progress
from engine.cluster.jobs.attempt import Attempt, TaskLife
from engine.graph.jobgraph import TaskId
from engine.graph.plan import OperatorKind, OperatorPlan, VertexPlan
from engine.rest.model.jobs import TaskStatus

VERTEX = "cd" * 16
SOURCE = VertexPlan(VERTEX, "n", 2, (OperatorPlan("n", "n", OperatorKind.SOURCE, "source"),))


def attempt(*watermarks: int | None) -> Attempt:
    tasks = [TaskId(VERTEX, index) for index in range(len(watermarks))]
    begun = Attempt.begin("a", 0, [], tasks, 1)
    for task, watermark in zip(tasks, watermarks, strict=True):
        life = TaskLife(TaskStatus.RUNNING, {TaskStatus.RUNNING: 1})
        if watermark is not None:
            life.metrics = {"currentOutputWatermark": watermark, "newestEventTime": watermark + 9}
            life.metrics_ms = 2
        begun.tasks[task] = life
    return begun


@pytest.mark.parametrize(
    ("watermarks", "position"), [((7, 5), 5), ((7, None), None), ((None, None), None)]
)
def test_the_slowest_subtask_counts_and_a_silent_one_makes_it_unknown(watermarks, position):
    assert source_progress(SOURCE, attempt(*watermarks)).watermark == position


def test_a_subtask_that_has_read_everything_holds_nobody_up():
    begun = attempt(7, None)
    begun.tasks[TaskId(VERTEX, 1)].input_ended = True
    assert source_progress(SOURCE, begun).watermark == 7


def test_the_newest_event_time_is_the_largest_that_any_subtask_read():
    assert source_progress(SOURCE, attempt(7, 5)).newest == 16
