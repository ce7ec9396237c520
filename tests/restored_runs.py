"""A small job in one thread that begins at any moment of an earlier run, as a restore would.

    Run ──every recorded snapshot──▶ Moment: manifest, files, output so far ──▶ Run, and so on

The files of a moment lie where the new run writes nothing, as those of another job do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random

import polars as pl

from engine import aggregates as agg
from engine import windows
from engine.checkpoint.coordination.effects import SnapshotRequest, WriteManifest
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.compatibility import check_restore
from engine.checkpoint.restoring.restore import assign, check_files, load_manifest
from engine.elements import AfterBarrier, SnapshotKind
from engine.graph.jobgraph import JobGraph
from engine.rest.model.requests import ClaimMode
from engine.state.changes import LayerPolicy
from engine.stream import Environment
from engine.testing.attempt import Attempt
from engine.testing.blueprint import Blueprint, drawn
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.readings import TIMES, readings
from engine.testing.recorded import CHECKPOINTS, Recorded, Records
from engine.testing.weather import Weather
from engine.testing.world import World

INPUT = {"short": readings(1, 6), "long": readings(2, 24), "middling": readings(3, 14)}
TABLES = ("sums", "late")
BEFORE = "before"
"""Where the checkpoints of an earlier job lie."""
STEPS = 20_000
EAGER = LayerPolicy(min_rows=1, max_share=1.0)
"""States are large from the first row on, so that checkpoints are layers on earlier ones."""


def small_job(parallelism: int, output: OutputTables) -> JobGraph:
    """Windows over three bounded splits, one of which ends much earlier than the others."""
    env = Environment("small", parallelism=parallelism, checkpoint_interval=None)
    rows = env.source(MemorySource(INPUT, every=30_000), uid="readings", watermarks=TIMES)
    sums = (
        rows.key_by("key")
        .window(windows.tumbling("1s"))
        .agg(n=agg.count(), total=agg.sum("value"), uid="sums")
    )
    sums.sink(output.sink("sums"), uid="out")
    sums.side_output("late").sink(output.sink("late"), uid="late")
    return env.graph()


@cache
def blueprint(parallelism: int) -> Blueprint:
    """The job at a parallelism."""
    return drawn(small_job, parallelism)


@dataclass(frozen=True)
class Moment:
    """A snapshot at the moment in which it was recorded."""

    manifest: Manifest
    folder: str
    is_recoverable: bool
    files: Mapping[str, bytes]
    committed: Mapping[str, list[pl.DataFrame]]
    staged: Mapping[str, list[pl.DataFrame]]


class _Remembered(Records):
    """The store, which also keeps every moment."""

    def __init__(self, world: World) -> None:
        super().__init__(world.storage, world.weather)
        self.moments: list[Moment] = []
        self._world = world

    def record(self, written: WriteManifest) -> None:
        super().record(written)
        output = self._world.output
        self.moments.append(
            Moment(
                written.manifest,
                written.folder,
                written.is_recoverable,
                _moved(self._world.storage.files),
                dict(output.committed),
                dict(output.staged),
            )
        )


class Run:
    """One attempt of the job."""

    def __init__(
        self,
        parallelism: int = 1,
        start: Moment | None = None,
        claim: ClaimMode = ClaimMode.NO_CLAIM,
        seed: int = 0,
    ) -> None:
        """`claim`: whether a restart of this run would find the snapshot among its own."""
        random = Random(seed)
        self.world = World(random, Weather(random), layers=EAGER)
        self.records = self.world.records = _Remembered(self.world)
        self.start, self.parallelism = start, parallelism
        if start is not None:
            self._begin_at(start, claim)
        self.attempt = self._attempt("first")

    def _begin_at(self, start: Moment, claim: ClaimMode) -> None:
        self.world.storage.files.update(start.files)
        self.world.output.committed = dict(start.committed)
        self.world.output.staged = dict(start.staged)
        self.records.next_id = start.manifest.checkpoint_id + 1
        if claim is ClaimMode.CLAIM:
            claimed = Recorded(start.manifest.checkpoint_id, _of_before(start.folder))
            self.records.snapshots.append(claimed)

    def _attempt(self, name: str) -> Attempt:
        own = self.records.snapshots
        given = None if self.start is None else _of_before(self.start.folder)
        folder = own[-1].folder if own else given
        job = blueprint(self.parallelism)
        id_ = f"{name}-{self.records.next_id}"
        if folder is None:
            return Attempt(job, id_, self.world)
        opened = self.world.storage.open
        manifest = load_manifest(folder, opened)
        check_files(manifest, folder, opened)
        check_restore(manifest, job.plan).raise_if_refused()
        return Attempt(job, id_, self.world, assign(manifest, folder, job.plan))

    @property
    def moments(self) -> list[Moment]:
        """Every snapshot so far, oldest first."""
        return self.records.moments

    @property
    def output(self) -> list[pl.DataFrame]:
        """All tables."""
        return [self.world.output.table(name) for name in TABLES]

    def savepoint(self, then: AfterBarrier = AfterBarrier.CONTINUE) -> None:
        """Ask for one."""
        request = SnapshotRequest("0" * 32, SnapshotKind.SAVEPOINT, then, "savepoints")
        self.attempt.request(request)

    def crash(self) -> None:
        """All processes are lost; the next attempt begins where it has to."""
        self.attempt.end()
        self.attempt = self._attempt("again")

    def step(self) -> None:
        """Let one thing happen."""
        steps = self.attempt.steps()
        if steps and self.world.random.random() > 0.1:
            self.world.random.choice(steps).do()
        else:
            self.attempt.tick(20_000)

    def to_its_end(self) -> Run:
        """Let it work until every subtask has ended by itself."""
        for _ in range(STEPS):
            if self.attempt.done:
                return self
            self.step()
        msg = f"the job does not end: {list(self.attempt.tasks.values())}"
        raise AssertionError(msg)


def _of_before(folder: str) -> str:
    return folder.replace(f"{CHECKPOINTS}/", f"{BEFORE}/", 1)


def _moved(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {_of_before(address): content for address, content in files.items()}


@cache
def undisturbed() -> list[pl.DataFrame]:
    """The output of the job when nothing happens to it."""
    return Run().to_its_end().output
