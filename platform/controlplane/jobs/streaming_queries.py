"""Streaming statistics of a job as its page shows them.

Units    delays are ms, times epoch ms, rates rows per second; None where there was no batch.
Missing  without a running job, or with an engine that keeps no such figures, `reason` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.backends.asked import Answer
from controlplane.backends.streaming import SourceBatches, StreamingFigures, streaming_figures
from controlplane.jobs.keeping_up import Busiest, Verdict, Words, recent, recent_rate, verdict
from controlplane.jobs.models import Job, Run
from controlplane.jobs.plan_view import plan_view
from controlplane.live import topics
from controlplane.live.queries import latest
from controlplane.metrics.queries import job_history

WINDOWS: Mapping[str, tuple[int, int]] = {"5": (300, 1), "15": (900, 3), "60": (3_600, 12)}
"""Minutes to window and step in seconds: 300 steps each."""
LINES = 20


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One source in the table, with its verdict."""

    source: SourceBatches
    verdict: Verdict

    @property
    def now(self) -> dict[str, float | None]:
        """The figures over the last third of the time, and what could be read in it."""
        series = self.source.series
        rate, headroom = recent_rate(series), recent(series, "headroom")
        return {
            "rate": rate,
            "headroom": headroom,
            "could_read": None if rate is None or headroom is None else rate * headroom,
            "queue": recent(series, "queue_delay_ms"),
            "processing": recent(series, "processing_time_ms"),
            "total": recent(series, "total_delay_ms"),
        }


@dataclass(frozen=True, slots=True)
class StreamingPage:
    """All of it."""

    minutes: str
    at_ms: int
    reason: str
    """Why there are no figures; empty when there are."""
    figures: StreamingFigures | None = None
    chosen: SourceLine | None = None
    """What strip, plots and steps are about."""
    sources: tuple[SourceLine, ...] = ()
    busiest: Busiest | None = None

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The newest steps in which a batch ended, newest first."""
        if self.figures is None or self.chosen is None:
            return []
        rows = step_rows(self.figures.time_ms, self.chosen.source.series)
        return [row for row in reversed(rows) if row["batches"]][:LINES]


def streaming_page(
    job: Job, run: Run | None, minutes: str, uid: str, words: Words
) -> StreamingPage:
    """The last minutes of a job, or of one of its sources."""
    if run is None or run.is_terminal:
        return StreamingPage(minutes, 0, f"the job {job.name} does not run")
    answer = answer_of(run, minutes)
    figures = answer.value
    if figures is None:
        return StreamingPage(minutes, answer.at_ms, _why(answer, run))
    busiest = busiest_of(job, run)
    every = [figures.job, *figures.sources]
    lines = [SourceLine(one, verdict(one, busiest, words)) for one in every]
    chosen = next((line for line in lines[1:] if line.source.uid == uid), lines[0])
    return StreamingPage(minutes, answer.at_ms, "", figures, chosen, tuple(lines[1:]), busiest)


def answer_of(run: Run, minutes: str) -> Answer[StreamingFigures]:
    """What the engine says; as old as a second at most."""
    return streaming_figures(run.cluster, run.engine_job_id, *WINDOWS[minutes])


def busiest_of(job: Job, run: Run) -> Busiest | None:
    """The vertex with the busiest subtask, by its name."""
    rows = latest(topics.operators(job.pk))
    known = {key: row["busy"] for key, row in rows.items() if row and row.get("busy") is not None}
    names = {node.id: node.name for node in plan_view(run.plan).nodes}
    if not known:
        return None
    top = max(sorted(known), key=lambda key: known[key])
    return Busiest(names.get(top, top), float(known[top]))


def step_rows(
    times: Sequence[int], series: Mapping[str, Sequence[float | None]]
) -> list[dict[str, Any]]:
    """The series as one mapping per step, oldest first."""
    return [
        {"time_ms": at, **{name: values[index] for name, values in series.items()}}
        for index, at in enumerate(times)
    ]


def plots(page: StreamingPage, job: Job) -> dict[str, Any]:
    """What the page's plots draw."""
    figures, chosen = page.figures, page.chosen
    if figures is None or chosen is None:
        return {
            "reason": page.reason,
            "at_ms": page.at_ms,
            "time_ms": [],
            "series": {},
            "delay": [],
        }
    return {
        "reason": "",
        "at_ms": page.at_ms,
        "step_s": figures.step_s,
        "time_ms": list(figures.time_ms),
        "series": chosen.source.series,
        "delay": job_history(job, figures.from_ms, figures.to_ms).delay,
    }


def _why(answer: Answer[StreamingFigures], run: Run) -> str:
    if answer.is_unknown:
        kind = run.cluster.get_kind_display()
        return f"{kind} keeps no streaming statistics of this job: {answer.reason}"
    return answer.reason
