"""Crashes: which processes of an attempt die, and how long the others go on before they end too.

    machine         everything at once
    job manager     the coordinator and its memory; the workers go on until they miss it
    task manager    the subtasks of some slots; the others go on until the job manager knows
    workers         all subtasks; the coordinator lives, and settles what is under way

A slot has the subtasks of one index: one of each vertex.
"""

from __future__ import annotations

from enum import StrEnum
from random import Random

from engine.testing.attempt import Attempt

LONGEST = 60
"""Steps from a crash to its discovery: enough for a checkpoint to be completed meanwhile."""


class Crash(StrEnum):
    """What dies."""

    MACHINE = "machine"
    JOB_MANAGER = "job manager"
    TASK_MANAGER = "task manager"
    WORKERS = "workers"


def strike(crash: Crash, attempt: Attempt, random: Random) -> int:
    """Let the processes of a crash die; say after how many steps the attempt ends."""
    match crash:
        case Crash.MACHINE:
            attempt.coordination.lose()
        case Crash.JOB_MANAGER:
            attempt.coordination.lose()
            return random.randint(0, LONGEST)
        case Crash.TASK_MANAGER:
            slots = {task.subtask for task in attempt.tasks}
            lost = set(random.sample(sorted(slots), random.randint(1, len(slots))))
            attempt.lose_tasks({task for task in attempt.tasks if task.subtask in lost})
            return random.randint(0, LONGEST)
        case Crash.WORKERS:
            pass
    return 0
