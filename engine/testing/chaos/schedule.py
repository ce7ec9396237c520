"""What is done to a cluster, and when: one seed is one schedule. Pure.

    seed ─▶ backend, parallelism, and deeds, one after the other:  wait 0.7 s ─▶ kill a worker ─▶ …

Units    seconds. A deed's wait begins when the deed before it was done, whatever that has led to:
         so many fall into a restart, a stop, a restore or a rescale, and some follow at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random


class Act(StrEnum):
    """What can be done."""

    KILL_WORKER = "kill -9 a worker"
    KILL_TASK_MANAGER = "kill -9 a task manager"
    KILL_JOB_MANAGER = "kill -9 the job manager"
    FREEZE = "stop a task manager and its workers past their heartbeat, then let them go on"
    DOZE = "stop a worker for less than its heartbeat"
    DOZE_JOB_MANAGER = "stop the job manager for a while"
    FILL_DISK = "let one process write no more to disk for a while"
    SAVEPOINT = "take a savepoint"
    RESCALE = "rescale the running job"
    MOVE = "stop with a savepoint, and start from it at another parallelism"


REQUESTS = frozenset({Act.SAVEPOINT, Act.RESCALE, Act.MOVE})
"""They last for a while, so something may happen during them."""

KILLS = (Act.KILL_WORKER, Act.KILL_TASK_MANAGER, Act.KILL_JOB_MANAGER)
WEIGHTS = {
    Act.KILL_WORKER: 5,
    Act.KILL_TASK_MANAGER: 3,
    Act.KILL_JOB_MANAGER: 3,
    Act.FREEZE: 1,
    Act.DOZE: 1,
    Act.DOZE_JOB_MANAGER: 1,
    Act.FILL_DISK: 2,
    Act.SAVEPOINT: 2,
    Act.RESCALE: 3,
    Act.MOVE: 3,
}
SHORT_LIST = (30, 86, 145)
"""Seeds that together do everything, also at once, on both backends, in little time."""

BACKENDS = ("memory", "rocksdb")
DEEDS = (3, 6)
PAUSE_S = (0.2, 1.8)
AT_ONCE_S = (0.0, 0.15)
LONG_S = (0.4, 1.5)


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that is done."""

    after_s: float
    act: Act
    victim: float
    """Which of those there are at that moment: 0 the first, just below 1 the last."""
    lasts_s: float

    def __str__(self) -> str:
        lasting = self.act in (Act.DOZE, Act.DOZE_JOB_MANAGER, Act.FILL_DISK)
        return f"after {self.after_s:.2f} s {self.act}" + f" ({self.lasts_s:.1f} s)" * lasting


@dataclass(frozen=True, slots=True)
class Schedule:
    """One disturbed life of a job."""

    seed: int
    backend: str
    parallelism: int
    early: bool
    """Whether the first deed comes while the job starts, instead of after its first checkpoint."""
    deeds: tuple[Deed, ...]

    def __str__(self) -> str:
        begin = "while it starts" if self.early else "after its first checkpoint"
        head = f"seed {self.seed}: {self.backend}, parallelism {self.parallelism}, {begin}"
        return "\n".join([head, *(f"  {deed}" for deed in self.deeds)])


def schedule_of(seed: int) -> Schedule:
    """The schedule of a seed."""
    chance = Random(seed)  # noqa: S311  a history, not a secret
    deeds: list[Deed] = []
    for _ in range(chance.randint(*DEEDS)):
        deeds.append(_deed(chance, deeds[-1].act if deeds else None))
    # Both backends come up, whichever seeds are chosen.
    backend, early = BACKENDS[seed % 2], seed % 6 == 2
    return Schedule(seed, backend, chance.choice((1, 2, 3)), early, tuple(deeds))


def _deed(chance: Random, before: Act | None) -> Deed:
    """A deed that may hit right into the one before."""
    (act,) = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
    hit = before is not None and chance.random() < (0.7 if before in REQUESTS else 0.3)
    if hit:
        act = chance.choice(KILLS)
    pause = chance.uniform(*(AT_ONCE_S if hit else PAUSE_S))
    return Deed(round(pause, 3), act, chance.random(), round(chance.uniform(*LONG_S), 2))
