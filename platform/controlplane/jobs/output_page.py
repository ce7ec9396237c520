"""Outputs of a job as its page shows them: where each sink writes, and what lies there.

sinks, as the engine describes them ─┬─ files     ─▶ Output ─ beside it, what replays write
measurements, found by name         ─┴─ points
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from controlplane.backends.sinks import SinkPlace, sinks_of
from controlplane.jobs.models import Job, Run
from controlplane.jobs.output_files import Files, Rows, look_into
from controlplane.jobs.output_series import Points, look_at
from controlplane.metrics.queries import measurements_of
from controlplane.metrics.store import series_store

INFLUX = "influx"
FILES = ("parquet", "JSON lines")
REPLAYS = 5
"""Replays whose output is shown beside: the newest ones."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What a replay wrote beside an output."""

    replay: str
    target: str
    files: Files | None
    points: Points | None


@dataclass(frozen=True, slots=True)
class Output:
    """One thing that a job writes to."""

    sink: SinkPlace
    files: Files | None = None
    points: Points | None = None
    beside: tuple[Beside, ...] = ()
    guessed: bool = False
    """Found by its name: the engine told nothing."""

    @property
    def rows(self) -> Rows | None:
        """The last rows, or points."""
        seen = self.files or self.points
        return seen.rows if seen else None

    @property
    def reason(self) -> str:
        """Why little or nothing is known of it."""
        seen = self.files or self.points
        return seen.reason if seen else f"a sink of kind {self.sink.kind} keeps nothing to look at"


@dataclass(frozen=True, slots=True)
class OutputPage:
    """All of them."""

    outputs: tuple[Output, ...]
    reason: str
    """Why the engine told nothing of the sinks; empty when it did."""


def output_page(job: Job, run: Run | None) -> OutputPage:
    """What a job writes, as far as it can be seen from here."""
    replays = [one.name for one in job.replays.order_by("-number")[:REPLAYS]]
    places, reason = sink_places(run)
    told = [output_of(place, replays) for place in places]
    targets = {place.target for place in places if place.kind == INFLUX}
    guessed = [
        output_of(SinkPlace(name, name, INFLUX, name, {}), replays, guessed=True)
        for name in measurements_of(series_store(), job.name)
        if name not in targets
    ]
    return OutputPage((*told, *guessed), reason)


def sink_places(run: Run | None) -> tuple[Sequence[SinkPlace], str]:
    """Where a run writes, and why that is not known."""
    if run is None:
        return (), "the job was never started"
    answer = sinks_of(run.cluster, run.engine_job_id)
    if answer.value is not None:
        return answer.value, ""
    if answer.is_unknown:
        return (), f"{run.cluster.get_kind_display()} tells nothing of this job's sinks"
    return (), answer.reason


def output_of(place: SinkPlace, replays: Sequence[str], *, guessed: bool = False) -> Output:
    """What lies where a sink writes, and beside it."""
    files, points = _look(place, place.target)
    return Output(place, files, points, tuple(_beside(place, replays)), guessed)


def _look(
    place: SinkPlace, target: str, *, with_rows: bool = True
) -> tuple[Files | None, Points | None]:
    if place.kind in FILES and target:
        return look_into(target, with_rows=with_rows), None
    if place.kind == INFLUX and target:
        return None, look_at(target, with_rows=with_rows)
    return None, None


def _beside(place: SinkPlace, replays: Sequence[str]) -> Iterator[Beside]:
    """Shadow sinks write under `<target>@<replay>`."""
    for replay in replays:
        target = f"{place.target}@{replay}"
        files, points = _look(place, target, with_rows=False)
        if (files and files.files) or (points and points.series):
            yield Beside(replay, target, files, points)
