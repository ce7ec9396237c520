"""The whole job in one thread under a seed: one seed is one reproducible history.

    seed --> what happens next, and when: elements, polls, time, snapshots, acks, savepoints, stops,
             rescales, limits of reading, storage that fails, is full or slow, messages that are
             lost or come again, crashes of some or all processes, noticed at once or late

    simulate(build, seed=7).output.table("sums") == simulate(build, 0, CALM).output.table("sums")

A new kind of fault is a field of `Chaos` that says how often, a place where it strikes (`_befall`
for what comes with time, `crashes.py` for what dies, `weather.py` for writes, `Mishaps` for
messages), and a line in the test that histories are rough enough, so that it is known to strike.

Guarantee  the law that tests hold with it: any history, the same output.
Errors   a history that does not end raises AssertionError; print its seed to see it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random

from engine.checkpoint.coordination.effects import SnapshotRequest
from engine.checkpoint.coordination.failure import FailureReason
from engine.checkpoint.restoring.compatibility import check_restore
from engine.checkpoint.restoring.restore import SubtaskRestore, assign, load_manifest
from engine.elements import AfterBarrier, SnapshotKind
from engine.graph.jobgraph import TaskId
from engine.state.changes import LayerPolicy
from engine.testing.attempt import Attempt
from engine.testing.blueprint import Blueprint, Blueprints, Build, drawn
from engine.testing.coordination import JobFailed
from engine.testing.crashes import Crash, strike
from engine.testing.memory import OutputTables
from engine.testing.place import Pace
from engine.testing.weather import Sky, Weather
from engine.testing.world import Mishaps, World

__all__ = ["CALM", "Build", "Chaos", "History", "simulate"]

MAX_STEPS = 200_000
"""More than any history of a test needs: a deadlock or a loop shows here."""

MAX_ROWS = (4, 12, 48)
"""Rows of a poll at most, in an attempt: many small batches, or a few large ones."""


@dataclass(frozen=True, slots=True)
class Chaos:
    """How rough a history is. Probabilities are per tick, but where another thing is said."""

    crash: float = 0.05
    max_crashes: int = 4
    storage_failure: float = 0.01
    """Per file, while the storage is well."""
    spell: float = 0.03
    """Of a storage that is full or slow."""
    max_spell_us: int = 800_000
    lost: float = 0.01
    """Per message between the coordinator and a task."""
    repeated: float = 0.02
    stop: float = 0.03
    savepoint: float = 0.03
    limit: float = 0.03
    """Of another limit of reading."""
    tick: float = 0.25
    """Per step, in a job of one subtask: the more there are, the more happens at a time."""
    max_tick_us: int = 100_000
    parallelisms: tuple[int, ...] = (1, 2, 3)
    max_concurrent: int = 3
    """Checkpoints under way at a time, in some attempts."""
    layers: float = 0.5
    """The part of histories in which checkpoints build on earlier ones."""


LIMITS = ((None, None), (0, None), (20, None), (200, None), (None, 1.0), (None, 50.0))
"""Rows per second: none, nothing, less and more than the jobs have to read; times real time."""

SHORT_CHAINS = LayerPolicy(min_rows=1, max_layers=3, max_share=100.0)
"""Layers of small states too, and however much of them has changed; chains that end soon."""

CALM = Chaos(
    crash=0,
    storage_failure=0,
    spell=0,
    lost=0,
    repeated=0,
    stop=0,
    savepoint=0,
    limit=0,
    layers=0,
    parallelisms=(1,),
)


@dataclass(slots=True)
class History:
    """What happened in a simulation, and what came out."""

    seed: int
    output: OutputTables
    parallelisms: list[int] = field(default_factory=list)
    """Of each attempt."""
    crashes: Counter[Crash] = field(default_factory=Counter)
    spells: Counter[Sky] = field(default_factory=Counter)
    stops: int = 0
    """Stops and suspensions in the middle, from which the job was started again."""
    limits: int = 0
    """Changes of how fast sources may read."""
    completed: int = 0
    """Snapshots of all kinds, over all attempts."""
    failed: Counter[FailureReason] = field(default_factory=Counter)


def simulate(build: Build | Blueprints, seed: int, chaos: Chaos = Chaos()) -> History:
    """Run a bounded job to its end through the history of this seed.

    A function builds the job anew for every attempt, so it may give another version of it.
    """
    draw = build.at if isinstance(build, Blueprints) else partial(drawn, build)
    try:
        return _Simulation(draw, seed, chaos).run()
    except Exception as error:
        error.add_note(f"seed {seed}: the same history again")
        raise


class _Simulation:
    """The attempts of one job, and what befalls them."""

    def __init__(self, draw: Callable[[int], Blueprint], seed: int, chaos: Chaos) -> None:
        self._draw = draw
        self._random = Random(seed)  # noqa: S311 - a history, not a secret
        self._chaos = chaos
        self._world = World(
            self._random,
            Weather(self._random, chaos.storage_failure, chaos.max_spell_us),
            Mishaps(chaos.lost, chaos.repeated),
            layers=SHORT_CHAINS if self._happens(chaos.layers) else None,
        )
        self._requests = 0
        self._paces: dict[Pace, int] = {}
        self._tick = 0.0
        """The probability that time passes instead of a step."""
        self._dies_in: int | None = None
        """Steps until the attempt ends because of a crash."""
        self._history = History(seed, self._world.output, spells=self._world.weather.seen)

    def run(self) -> History:
        """Start attempts until one ends with all input read."""
        finished = False
        while not finished:
            attempt = self._start()
            try:
                finished = self._run_attempt(attempt)
            finally:
                attempt.end()
        self._count()
        return self._history

    def _start(self) -> Attempt:
        self._world.max_rows = self._random.choice(MAX_ROWS)
        self._world.concurrent = self._random.randint(1, self._chaos.max_concurrent)
        # Another part is slow in each attempt: evenly random histories are all alike.
        self._paces = {pace: self._random.choice((1, 1, 5, 25)) for pace in Pace}
        self._dies_in = None
        parallelism = self._random.choice(self._chaos.parallelisms)
        self._history.parallelisms.append(parallelism)
        blueprint = self._draw(parallelism)
        attempt_id = f"attempt{len(self._history.parallelisms)}"
        attempt = Attempt(blueprint, attempt_id, self._world, self._restore(blueprint))
        self._tick = self._chaos.tick / len(attempt.tasks)
        return attempt

    def _restore(self, blueprint: Blueprint) -> Mapping[TaskId, SubtaskRestore]:
        if not self._world.records.snapshots:
            return {}
        folder = self._world.records.snapshots[-1].folder
        manifest = load_manifest(folder, self._world.storage.open)
        check_restore(manifest, blueprint.plan).raise_if_refused()
        return assign(manifest, folder, blueprint.plan)

    def _run_attempt(self, attempt: Attempt) -> bool:
        """Drive an attempt to its end; say whether the job is finished."""
        for _ in range(MAX_STEPS):
            if attempt.done:
                self._history.stops += not attempt.input_ended
                return attempt.input_ended
            try:
                if self._crashes(attempt):
                    return False
                self._step(attempt)
            except JobFailed:
                return False
        msg = f"job does not end: {[repr(task) for task in attempt.tasks.values()]}"
        raise AssertionError(msg)

    def _crashes(self, attempt: Attempt) -> bool:
        """Let processes die; say whether everything that is left has to end now."""
        if self._dies_in is None:
            chaos, crashes = self._chaos, self._history.crashes
            if crashes.total() == chaos.max_crashes or not self._happens(chaos.crash * self._tick):
                return False
            crash = self._random.choice(list(Crash))
            crashes[crash] += 1
            self._dies_in = strike(crash, attempt, self._random)
        self._dies_in -= 1
        return self._dies_in < 0

    def _step(self, attempt: Attempt) -> None:
        steps = attempt.steps()
        if not steps or self._happens(self._tick):
            attempt.tick(self._random.randrange(self._chaos.max_tick_us))
            self._befall(attempt)
        else:
            weights = [self._paces[step.pace] for step in steps]
            self._random.choices(steps, weights)[0].do()

    def _befall(self, attempt: Attempt) -> None:
        """What comes with time: requests of people, and spells of the storage."""
        chaos = self._chaos
        if self._happens(chaos.stop):
            self._request(attempt, self._random.choice((AfterBarrier.STOP, AfterBarrier.SUSPEND)))
        if self._happens(chaos.savepoint):
            self._request(attempt, AfterBarrier.CONTINUE)
        if self._happens(chaos.limit):
            self._history.limits += 1
            attempt.limit(*self._random.choice(LIMITS))
        if self._happens(chaos.spell):
            sky = self._random.choice((Sky.FULL, Sky.SLOW))
            self._world.weather.begin(sky, self._world.now)

    def _happens(self, probability: float) -> bool:
        return self._random.random() < probability

    def _request(self, attempt: Attempt, then: AfterBarrier) -> None:
        self._requests += 1
        is_ours = then is AfterBarrier.SUSPEND
        kind = SnapshotKind.CHECKPOINT if is_ours else SnapshotKind.SAVEPOINT
        attempt.request(SnapshotRequest(f"{self._requests:032x}", kind, then, "savepoints"))

    def _count(self) -> None:
        for log in self._world.logs:
            told = log.history()
            self._history.completed += told.counts.completed
            self._history.failed.update(each.reason for each in told.history if each.reason)
