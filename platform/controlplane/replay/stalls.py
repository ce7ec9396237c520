"""Why a replay does not get on, or not fast enough: the first cause that explains it. Pure.

    nobody lets it read      paused
    it does not run          the engine is away, no slots, restarting, another state of its run
    it has nothing to read   sources exhausted
    it may not read faster   its read limit
    it cannot work faster    the operator that others wait for, or the busiest
    none of these            not known, and said

Units    rates are rows per second, busy is percent of the busiest subtask's time; None is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from controlplane.backends.sightings import JobSighting

RUNNING = "RUNNING"
BUSY = 60.0
"""Percent of its time from which an operator that waits for nobody is to blame."""
AT_THE_LIMIT = 0.9
"""Of what it may read: less, and something else slows it down."""
STATES = {
    "RESTARTING": "restarts",
    "FAILING": "fails",
    "CREATED": "waits for the engine to start it",
    "INITIALIZING": "is being started",
    "RECONCILING": "is being taken over by another job manager",
    "SUSPENDED": "is suspended: the engine has no job manager for it",
}
"""What a run does that does not run, by Flink's job state."""


class Cause(StrEnum):
    """What holds a replay up."""

    PAUSED = "paused"
    ENGINE_AWAY = "engine_away"
    NO_SLOTS = "no_slots"
    RESTARTING = "restarting"
    NOT_RUNNING = "not_running"
    EXHAUSTED = "source_exhausted"
    READ_LIMIT = "read_limit"
    OPERATOR = "operator"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stall:
    """The cause, and what follows "not catching up:" in words."""

    cause: Cause
    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look at the engine showed of a replay's run."""

    state: str = RUNNING
    away: str = ""
    """Which engine does not answer, in words."""
    waiting_for: str = ""
    """What it waits for before it can run, in the engine's words."""
    pending_rows: int | None = None
    rate: float | None = None
    restarts: int = 0
    failure: str = ""
    """Of its last restart."""
    held: str = ""
    """Which operator the others wait for, in a sentence."""
    busiest: str = ""
    """The operator with the most to do, when it is busy and waits for nobody."""
    measured: bool = False
    """Whether the engine says how busy operators are."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a replay is to read."""

    paused: bool = False
    limit: float | None = None
    """Rows per second."""
    speed: float | None = None
    """Times real time."""


def seen_of(sighting: JobSighting, held: str = "") -> Seen:
    """What matters of a look; `held`: which operator holds it back, said after several looks."""
    last = next(iter(sighting.failures), None)
    busy = [one for one in sighting.vertices if one.busy is not None]
    most = max(busy, key=lambda one: one.busy or 0.0, default=None)
    to_blame = most is not None and (most.busy or 0.0) >= BUSY
    return Seen(
        state=sighting.state,
        waiting_for=sighting.waiting_for,
        pending_rows=sighting.pending_rows,
        rate=sighting.in_rate,
        restarts=sighting.restarts or 0,
        failure="" if last is None else f"{last.sentence}{f' ({last.task})' if last.task else ''}",
        held=held,
        busiest=sighting.name_of(most.id) if most is not None and to_blame else "",
        measured=bool(busy),
    )


def stall(seen: Seen, pace: Pace, restarts_lately: int = 0) -> Stall:
    """Why a replay that does not catch up does not; `restarts_lately`: in the samples kept."""
    if pace.paused:
        return Stall(Cause.PAUSED, "paused: nothing is read until somebody lets it go on")
    if seen.away:
        return Stall(Cause.ENGINE_AWAY, seen.away)
    if seen.state != RUNNING:
        return _not_running(seen)
    if restarts_lately:
        times = f"restarted {seen.restarts} time{'s' if seen.restarts > 1 else ''}"
        return Stall(Cause.RESTARTING, f"its run has {times}{_because(seen)}")
    if seen.pending_rows == 0:
        return Stall(Cause.EXHAUSTED, "its sources have nothing left to read")
    return _limited(seen, pace) or _held_back(seen)


def _not_running(seen: Seen) -> Stall:
    if seen.waiting_for:
        return Stall(Cause.NO_SLOTS, seen.waiting_for)
    if seen.state == "RESTARTING":
        time = f"restarts for the {ordinal(max(1, seen.restarts))} time"
        return Stall(Cause.RESTARTING, f"its run {time}{_because(seen)}")
    doing = STATES.get(seen.state, f"is {seen.state.lower() or 'in an unknown state'}")
    return Stall(Cause.NOT_RUNNING, f"its run {doing}{_because(seen)}")


def _limited(seen: Seen, pace: Pace) -> Stall | None:
    if pace.speed is not None:
        text = f"its event time may pass at most {pace.speed:,.15g}× as fast as real time"
        return Stall(Cause.READ_LIMIT, text)
    if pace.limit is None or (seen.rate is not None and seen.rate < AT_THE_LIMIT * pace.limit):
        return None
    does = "" if seen.rate is None else ", and do"
    text = f"its sources may read {pace.limit:,.15g} rows a second{does}"
    return Stall(Cause.READ_LIMIT, text)


def _held_back(seen: Seen) -> Stall:
    if seen.held:
        return Stall(Cause.OPERATOR, seen.held)
    if seen.busiest:
        return Stall(
            Cause.OPERATOR, f"{seen.busiest} is busy most of the time and waits for nobody"
        )
    if not seen.measured:
        why = "the engine does not say how busy its operators are"
    else:
        why = "no operator is busy, no limit is reached, and there are rows to read"
    return Stall(Cause.UNKNOWN, f"why is not known: {why}")


def _because(seen: Seen) -> str:
    return f", failing with: {seen.failure}" if seen.failure else ""


def ordinal(number: int) -> str:
    """A place in a row.

    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 111)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '111th']
    """
    endings = {1: "st", 2: "nd", 3: "rd"}
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else endings.get(number % 10, 'th')}"
