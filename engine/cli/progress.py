"""What there is to tell of a running job, and how it is shown on a screen.

    2013-03-11 11:06:00 · 12,345 rows in · 678 rows out · 4 checkpoints        rewritten in place

Order    the screen is a terminal or a file: only a terminal gets the line that is rewritten, and
         not when the job prints on the same one.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TextIO

from engine.clock import monotonic
from engine.cluster.answers.views import job_progress
from engine.cluster.jobs.master import JobMaster
from engine.elements import MAX_TIME, AfterBarrier, Micros
from engine.graph.jobgraph import JobGraph
from engine.graph.plan import OperatorKind
from engine.operators.sink import SinkOperator
from engine.rest.model.jobs import Failure, JobStatus

SHOW_S = 0.5
ERASE = "\r\x1b[2K"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Sight:
    """What there is to tell of a job at one moment."""

    status: JobStatus
    failure: Failure | None
    """Why it failed."""
    failures: tuple[Failure, ...]
    """All that it has survived so far, or not, oldest first."""
    position: Micros | None
    rows_in: int
    rows_out: int
    checkpoints: int
    stopped_at: str | None
    """The savepoint that ended it."""

    @classmethod
    def of(cls, master: JobMaster) -> Sight:
        """Look at a job. On the cluster thread."""
        history = master.snapshots.log.history()
        savepoint = history.latest_savepoint
        stopped = savepoint is not None and savepoint.then is not AfterBarrier.CONTINUE
        return cls(
            status=master.life.status,
            failure=master.failure,
            failures=tuple(reversed(master.failures.newest_first)),
            position=job_progress(master).position,
            rows_in=_rows(master, OperatorKind.SOURCE, "numRecordsOut"),
            rows_out=_rows(master, OperatorKind.SINK, "numRecordsIn"),
            checkpoints=history.counts.completed,
            stopped_at=savepoint.external_path if savepoint and stopped else None,
        )

    @property
    def counts(self) -> str:
        """How much it has done."""
        shown = f"{self.rows_in:,} rows in, {self.rows_out:,} rows out"
        return f"{shown}, {self.checkpoints} checkpoint{'s' * (self.checkpoints != 1)}"

    @property
    def time(self) -> str:
        """How far it is."""
        if self.position is None:
            return "starting" if self.status is not JobStatus.RUNNING else "running"
        if self.position == MAX_TIME:
            return "end of input"
        return (_EPOCH + timedelta(microseconds=self.position)).strftime("%Y-%m-%d %H:%M:%S")


class Show:
    """Tells of the job, and shows its progress where a person looks on."""

    def __init__(self, graph: JobGraph, screen: TextIO) -> None:
        prints = any(
            isinstance(chained.operator, SinkOperator)
            and chained.operator.describe().get("kind") == "print"
            for vertex in graph.vertices
            for chained in vertex.operators
        )
        self._name = graph.name
        self._screen = screen
        self._live = screen.isatty() and not (prints and sys.stdout.isatty())
        self._began = monotonic()
        self._shown = 0.0
        self._told_ms = 0

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return monotonic() - self._began

    def progress(self, sight: Sight) -> None:
        """Tell of new restarts, and show how far the job is."""
        for failure in sight.failures:
            if failure.at_ms > self._told_ms and sight.status is not JobStatus.FAILING:
                self.say(f"job {self._name} restarts: {failure.message}")
                self._told_ms = failure.at_ms
        if self._live and self.seconds - self._shown >= SHOW_S:
            self._shown = self.seconds
            line = f"{sight.time} · {sight.counts.replace(', ', ' · ')}"
            self._screen.write(f"{ERASE}{line}")
            self._screen.flush()

    def say(self, sentence: str) -> None:
        """Tell something for good."""
        self.erase()
        print(f"headwater: {sentence}", file=self._screen, flush=True)

    def erase(self) -> None:
        """Take the line of progress away."""
        if self._live:
            self._screen.write(ERASE)
            self._screen.flush()


def _rows(master: JobMaster, kind: OperatorKind, metric: str) -> int:
    """Rows through all operators of a kind, as far as workers have reported."""
    tasks = {} if master.attempt is None else master.attempt.tasks
    wanted = {
        vertex.id: [operator.name for operator in vertex.operators if operator.kind is kind]
        for vertex in master.plan.vertices
    }
    return sum(
        int(task.metrics.get(f"{name}.{metric}", 0))
        for id_, task in tasks.items()
        for name in wanted[id_.vertex]
    )
