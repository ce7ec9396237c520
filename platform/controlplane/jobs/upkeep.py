"""What becomes of a wanted job whose run has ended: a decision, without effects.

    LOST | FAILED ──▶ Start, from where the run was        with growing delays between tries
                  └─▶ Rest, with the reason                FINISHED, CANCELED, paused, no snapshot

Guarantee   Never behind what the run has committed: it goes on from its newest checkpoint, or from
            a savepoint taken after that, and if neither can be read a person decides. Never empty
            when the job requires state.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.jobs.models import RunState

MOST_TRIES = 8
"""Starts in a row without a healthy run; about half an hour, then somebody has to look."""
FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=10), timedelta(minutes=10)
RESTARTED = frozenset({RunState.LOST, RunState.FAILED})


@dataclass(frozen=True, slots=True)
class Found:
    """What the job can go on from."""

    path: str = ""
    savepoint: int | None = None
    name: str = "nothing"
    """In words: `checkpoint 88 of 09:14:03`."""
    unreadable: str = ""
    """Why what it should go on from cannot be read."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended though its job is wanted."""

    run: int
    state: RunState
    failure: str


@dataclass(frozen=True, slots=True)
class Tries:
    """What was tried already."""

    number: int = 0
    not_before: datetime | None = None
    paused: str = ""
    """Who paused it, and why; empty: nobody."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start it now."""

    sentence: str
    not_before: datetime
    """If that does not help: when to try again."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Leave it."""

    sentence: str


def rests(ended: Ended, tries: Tries) -> Rest | None:
    """Why it is left as it is whatever it could go on from."""
    if tries.paused:
        return Rest(f"not started again: {tries.paused}")
    if ended.state == RunState.FINISHED:
        return Rest(f"run {ended.run} has finished: its input has ended")
    if ended.state not in RESTARTED:
        return Rest(
            f"run {ended.run} was cancelled on the engine, not from here: "
            "start the job again, or stop wanting it"
        )
    if tries.number >= MOST_TRIES:
        return Rest(
            f"gave up after {tries.number} starts in a row that did not become healthy: "
            f"{ended.failure or 'the engine gave no reason'}; correct that and start the job"
        )
    return None


def decide(
    ended: Ended, tries: Tries, found: Found, now: datetime, *, require_state: bool
) -> Start | Rest | None:
    """What to do; None: wait, it is too early for another try."""
    if rest := rests(ended, tries):
        return rest
    if tries.not_before and now < tries.not_before:
        return None
    if found.unreadable:
        return Rest(
            f"not started again: {found.name} cannot be read ({found.unreadable}), and going back "
            "further would write output a second time; choose a savepoint and start the job"
        )
    if require_state and not found.path:
        return Rest(
            f"not started again: the job requires state and run {ended.run} left none; "
            "choose a savepoint, or turn the setting off"
        )
    return Start(_sentence(ended, found, tries), now + delay_after(tries.number))


def delay_after(number: int) -> timedelta:
    """How long after the try of that number (from 0) the next one may be.

    >>> [delay_after(number).seconds for number in (0, 1, 5, 6, 60)]
    [10, 20, 320, 600, 600]
    """
    return min(FIRST_DELAY * (1 << min(number, 30)), LONGEST_DELAY)


def _sentence(ended: Ended, found: Found, tries: Tries) -> str:
    lost = ended.state == RunState.LOST
    why = "the engine no longer knew it" if lost else (ended.failure or "it failed")
    source = f"restored from {found.name}" if found.path else "started from nothing"
    again = f" (try {tries.number + 1})" if tries.number else ""
    return f"{source} in place of run {ended.run}, because {why}{again}"[:500]
