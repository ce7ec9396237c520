"""Which ended jobs a job manager forgets: a decision, without effects; see retention.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """How many ended jobs are remembered, and for how long."""

    max_capacity: int = 500
    """A job takes some 50 kB of memory, and what its user code has printed."""
    expiration_ms: int = 7 * 86_400_000
    """Long enough for whoever was away to learn how a job ended."""


WEEK = Rules()


def forgettable(ended: Iterable[tuple[int, str]], rules: Rules, at_ms: int) -> Sequence[str]:
    """The ids of jobs to forget, of those that ended at (ms, id).

    >>> forgettable([(1, "a"), (5, "b"), (6, "c")], Rules(2, expiration_ms=100), at_ms=105)
    ['a', 'b']
    >>> forgettable([(1, "a"), (5, "b"), (6, "c")], Rules(2, expiration_ms=1_000), at_ms=105)
    ['a']
    """
    by_age = sorted(ended)
    beyond = len(by_age) - rules.max_capacity
    return [
        job_id
        for place, (end_ms, job_id) in enumerate(by_age)
        if place < beyond or end_ms + rules.expiration_ms <= at_ms
    ]
