"""The whole job in one thread under a seed: one seed is one reproducible history.

    seed --> what happens next, and when: elements, polls, time, snapshots, acks, storage failures,
             crashes (also between a complete snapshot and its commit), rescales, savepoints, stops

    simulate(build, seed=7).output.table("sums") == simulate(build, 0, CALM).output.table("sums")

Guarantee  the law that tests hold with it: any history, the same output.
Errors   a history that does not end raises AssertionError; print its seed to see it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from engine.checkpoint.compatibility import check_restore
from engine.checkpoint.effects import SnapshotRequest
from engine.checkpoint.restore import SubtaskRestore, assign, load_manifest
from engine.checkpoint.stats import CheckpointLog
from engine.elements import AfterBarrier, Micros, SnapshotKind
from engine.graph.jobgraph import JobGraph, TaskId
from engine.graph.plan import plan_of
from engine.testing.attempt import Attempt, Completed, JobFailed, Mishaps, Pace
from engine.testing.memory import MemoryStorage, OutputTables

Build = Callable[[int, OutputTables], JobGraph]
"""(parallelism, where the sinks go) -> the job. Called for every attempt."""

MAX_STEPS = 200_000
"""More than any history of a test needs: a deadlock or a loop shows here."""


@dataclass(frozen=True, slots=True)
class Chaos:
    """How rough a history is. Probabilities are per step."""

    crash: float = 0.004
    max_crashes: int = 4
    storage_failure: float = 0.05
    lost: float = 0.01
    """Per message between the coordinator and a task."""
    repeated: float = 0.02
    stop: float = 0.005
    savepoint: float = 0.004
    tick: float = 0.05
    max_tick_us: int = 300_000
    parallelisms: tuple[int, ...] = (1, 2, 3)


CALM = Chaos(crash=0, storage_failure=0, lost=0, repeated=0, stop=0, savepoint=0, parallelisms=(1,))


@dataclass(slots=True)
class History:
    """What happened in a simulation, and what came out."""

    seed: int
    output: OutputTables
    parallelisms: list[int] = field(default_factory=list)
    """Of each attempt."""
    crashes: int = 0
    stops: int = 0
    """Stops with savepoint in the middle, from which the job was started again."""
    completed: int = 0
    """Snapshots of all kinds, over all attempts."""
    failed: int = 0


def simulate(build: Build, seed: int, chaos: Chaos = Chaos()) -> History:
    """Run a bounded job to its end through the history of this seed."""
    simulation = _Simulation(build, seed, chaos)
    try:
        return simulation.run()
    except Exception as error:
        error.add_note(f"seed {seed}: the same history again")
        raise


class _Simulation:
    """The world around the attempts of one job."""

    def __init__(self, build: Build, seed: int, chaos: Chaos) -> None:
        self._build = build
        self._random = Random(seed)  # noqa: S311 - a history, not a secret
        self._chaos = chaos
        self._log = CheckpointLog()
        self._storage = MemoryStorage(lambda: self._random.random() < chaos.storage_failure)
        self._completed: Completed | None = None
        self._now = Micros(0)
        self._requests = 0
        self._next_id = 1
        self._paces: dict[Pace, int] = {}
        self._history = History(seed, OutputTables())

    def run(self) -> History:
        """Start attempts until one ends with all input read."""
        finished = False
        while not finished:
            attempt = self._start()
            finished = self._run_attempt(attempt)
            self._next_id = attempt.coordinator.next_id
        self._count()
        return self._history

    def _start(self) -> Attempt:
        # Another part is slow in each attempt: evenly random histories are all alike.
        self._paces = {pace: self._random.choice((1, 1, 5, 25)) for pace in Pace}
        parallelism = self._random.choice(self._chaos.parallelisms)
        self._history.parallelisms.append(parallelism)
        graph = self._build(parallelism, self._history.output)
        return Attempt(
            graph,
            f"attempt{len(self._history.parallelisms)}",
            self._restore(graph),
            self._storage,
            self._log,
            first_id=self._next_id,
            now=self._now,
            on_completed=self._complete,
            mishaps=Mishaps(self._chaos.lost, self._chaos.repeated),
            concurrent=1 + (self._history.seed + len(self._history.parallelisms)) % 3,
        )

    def _restore(self, graph: JobGraph) -> dict[TaskId, SubtaskRestore]:
        if self._completed is None:
            return {}
        plan = plan_of(graph)
        manifest = load_manifest(self._completed.folder, self._storage.open)
        check_restore(manifest, plan).raise_if_refused()
        return assign(manifest, self._completed.folder, plan)

    def _complete(self, completed: Completed) -> None:
        self._completed = completed

    def _run_attempt(self, attempt: Attempt) -> bool:
        """Drive an attempt to its end; say whether the job is finished."""
        for _ in range(MAX_STEPS):
            if attempt.done:
                self._history.stops += not attempt.input_ended
                return attempt.input_ended
            try:
                if self._crashes():
                    self._crash(attempt)
                    return False
                self._step(attempt)
            except JobFailed:
                return False
        msg = f"job does not end: {[repr(task) for task in attempt.tasks.values()]}"
        raise AssertionError(msg)

    def _crashes(self) -> bool:
        history, chaos = self._history, self._chaos
        crash = history.crashes < chaos.max_crashes and self._random.random() < chaos.crash
        history.crashes += crash
        return crash

    def _crash(self, attempt: Attempt) -> None:
        """Kill the tasks only, or the coordinator and all it remembers with them."""
        if self._random.random() < 0.5:
            attempt.settle()
        else:
            self._count()
            self._log = CheckpointLog()

    def _count(self) -> None:
        counts = self._log.history().counts
        self._history.completed += counts.completed
        self._history.failed += counts.failed

    def _step(self, attempt: Attempt) -> None:
        steps = attempt.steps(self._random)
        if not steps or self._random.random() < self._chaos.tick:
            attempt.tick(self._random.randrange(self._chaos.max_tick_us))
            self._now = attempt.now
            self._maybe_request(attempt)
        else:
            weights = [self._paces[step.pace] for step in steps]
            self._random.choices(steps, weights)[0].do()

    def _maybe_request(self, attempt: Attempt) -> None:
        luck = self._random.random() * self._chaos.tick
        if luck < self._chaos.stop:
            self._request(attempt, AfterBarrier.STOP)
        elif luck < self._chaos.stop + self._chaos.savepoint:
            self._request(attempt, AfterBarrier.CONTINUE)

    def _request(self, attempt: Attempt, then: AfterBarrier) -> None:
        self._requests += 1
        trigger_id = f"{self._requests:032x}"
        attempt.request(SnapshotRequest(trigger_id, SnapshotKind.SAVEPOINT, then, "savepoints"))
