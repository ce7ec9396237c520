"""What a person sees of a job that runs in a cluster of its own."""

from __future__ import annotations

import io
from dataclasses import replace

import polars as pl
import pytest

import engine as hw
from engine.cli.progress import ERASE, Show, Sight
from engine.connectors.frame import FrameSource
from engine.connectors.print import PrintSink
from engine.elements import MAX_TIME, Micros
from engine.graph.jobgraph import JobGraph
from engine.rest.model.jobs import Failure, JobStatus


class Screen(io.StringIO):
    """A terminal, or not."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


SIGHT = Sight(JobStatus.RUNNING, None, (), Micros(86_400_000_000), 1_200, 34, 1, None)
LOST = Failure("WorkerLost", "worker process 7 was killed by signal 9", 1_000)


@pytest.fixture
def graph() -> JobGraph:
    env = hw.Environment("words")
    env.source(FrameSource(pl.DataFrame({"a": [1]})), uid="a").sink(PrintSink(), uid="print")
    return env.graph()


def shown(graph: JobGraph, *sights: Sight, terminal: bool = False) -> str:
    screen = Screen(terminal=terminal)
    show = Show(graph, screen)
    show._shown = -1.0  # the first look is not too soon
    for sight in sights:
        show.progress(sight)
    return screen.getvalue()


def test_a_terminal_gets_a_line_that_is_rewritten(graph: JobGraph) -> None:
    line = "1970-01-02 00:00:00 · 1,200 rows in · 34 rows out · 1 checkpoint"
    assert shown(graph, SIGHT, terminal=True) == f"{ERASE}{line}"


def test_a_file_gets_none(graph: JobGraph) -> None:
    assert shown(graph, SIGHT) == ""


def test_a_job_that_prints_on_the_terminal_is_not_disturbed(
    graph: JobGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", Screen(terminal=True))
    assert shown(graph, SIGHT, terminal=True) == ""


def test_each_restart_is_told_once_however_many_there_were(graph: JobGraph) -> None:
    later = replace(LOST, message="disk full", at_ms=2_000)
    first = replace(SIGHT, failures=(LOST,))
    both = replace(SIGHT, failures=(LOST, later))
    rest = replace(SIGHT, failures=(later,))
    assert shown(graph, first, first, both, rest).splitlines() == [
        "headwater: job words restarts: worker process 7 was killed by signal 9",
        "headwater: job words restarts: disk full",
    ]


def test_the_failure_that_ends_a_job_is_no_restart(graph: JobGraph) -> None:
    failing = replace(SIGHT, status=JobStatus.FAILING, failures=(LOST,))
    assert shown(graph, failing) == ""


@pytest.mark.parametrize(
    ("status", "position", "told"),
    [
        (JobStatus.CREATED, None, "starting"),
        (JobStatus.RUNNING, None, "running"),
        (JobStatus.RUNNING, MAX_TIME, "end of input"),
    ],
)
def test_a_job_without_an_event_time_says_where_it_is(
    status: JobStatus, position: Micros | None, told: str
) -> None:
    assert replace(SIGHT, status=status, position=position).time == told
