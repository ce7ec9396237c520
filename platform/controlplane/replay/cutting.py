"""The event time T of a cut over: which are possible, and what has to hold for each window once.

    old version  ──── windows up to T ────┤ ends by itself
    new version                           ├──── windows from T on ────▶

Holds    T lies ahead of everything that either has read when it stops for the cut, so neither has
         written a window that ends after T. Every output is of windows that give one result, at
         their end. Every split of the old version gets to T.
Units    positions and splits' watermarks are event times; of splits µs.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from controlplane.access.errors import conflict, invalid
from controlplane.backends.contract import SavepointSummary
from controlplane.moments import EPOCH, epoch_us, moment_us
from controlplane.replay import progress
from controlplane.replay.models import Replay
from controlplane.replay.outputs.targets import POINTS, Target
from controlplane.replay.sampling import samples_of

LEAD_S = 30.0
"""Wall seconds to T that are proposed: both versions stop and start on the way, about 3 s each."""
LEAST_LEAD = timedelta(minutes=1)
UNITS = tuple(timedelta(seconds=s) for s in (86_400, 3_600, 60, 1))
AT_ITS_END = "event time"
"""The trigger that fires a window once, when event time has passed it."""
INSTEAD = "promote with the results since the savepoint instead"


def proposed(replay: Replay) -> datetime | None:
    """A T ahead of both, round, some seconds away; None while a position is not known."""
    if replay.live_event_time is None or replay.event_time_now is None:
        return None
    pace = progress.assess(samples_of(replay)).live_speed or 0.0
    lead = max(LEAST_LEAD, timedelta(seconds=min(pace * LEAD_S, 1e9)))
    unit = next(unit for unit in UNITS if unit <= lead)
    ahead = max(replay.live_event_time, replay.event_time_now) + lead - EPOCH
    return EPOCH + -(-ahead // unit) * unit


def chosen(replay: Replay, wish: datetime | Literal["soon"]) -> datetime:
    """The T that somebody wishes. Raises Refused."""
    if wish != "soon":
        return wish
    if (soon := proposed(replay)) is None:
        raise conflict(_unknown(replay))
    return soon


def check_ahead(replay: Replay, at: datetime) -> None:
    """Refuse a T that one of them has reached. Raises Refused."""
    live, own = replay.live_event_time, replay.event_time_now
    if live is None or own is None:
        raise conflict(_unknown(replay))
    if at <= max(live, own):
        msg = (
            f"{replay} cannot be cut over at {text_of(at)}: the live job is at {text_of(live)} and "
            f"the replay at {text_of(own)}; give a time after both, or {INSTEAD}"
        )
        raise invalid(msg, "at")


def _unknown(replay: Replay) -> str:
    who = "the live job" if replay.live_event_time is None else "the replay"
    return f"{replay} cannot be cut over at a time: how far {who} is, is not known; {INSTEAD}"


def why_not_cut(targets: Iterable[Target]) -> str:
    """Why not every output can be cut at an event time; empty when each can."""
    for target in targets:
        if not target.window and target.kind != "discard":
            return (
                f"rows of {target.name} are no results of windows, so some from T on may have "
                f"been written already; {INSTEAD}"
            )
        if target.window.get("trigger", AT_ITS_END) != AT_ITS_END:
            return (
                f"windows of {target.name} give results before their end "
                f"(trigger {target.window['trigger']}), so both versions would; {INSTEAD}"
            )
    return ""


def why_passed(summary: SavepointSummary, at: datetime, who: str) -> str:
    """Why a version that stopped there has gone too far; empty when it has not."""
    found = [split.get("watermark") for _, _, split in _splits(summary)]
    furthest = max((mark for mark in found if mark is not None), default=None)
    if furthest is None or furthest <= epoch_us(at):
        return ""
    return (
        f"{who} had got to {text_of(moment_us(furthest))} already, past {text_of(at)}; "
        "choose a later time"
    )


def why_never(summary: SavepointSummary, at: datetime, who: str) -> str:
    """Why a version that goes on from there would not end at T; empty when it would."""
    for uid, name, split in _splits(summary):
        if split.get("idle") or ("watermark" in split and split["watermark"] is None):
            return (
                f"split {name} of {uid} gives no rows, so {who} would never get to "
                f"{text_of(at)}; {INSTEAD}"
            )
    return ""


def has_ended_splits(summary: SavepointSummary, before: SavepointSummary) -> bool:
    """Whether it has read one to its end that had not ended before."""
    ended = {(uid, name) for uid, name, split in _all_splits(before) if split.get("finished")}
    return any(
        split.get("finished") and (uid, name) not in ended
        for uid, name, split in _all_splits(summary)
    )


def first_points(targets: Sequence[Target], at: datetime) -> dict[str, datetime]:
    """Output → time of the first point that is of a window from T on, where that is known.

    Exact for points that have the end of their window, or the event time of its result.
    """
    later = {"window_end": timedelta(microseconds=1), "event_time": timedelta()}
    return {
        target.uid: at + later[target.time]
        for target in targets
        if target.kind == POINTS and target.time in later
    }


def _splits(summary: SavepointSummary) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Those that go on: operator, name, state."""
    return (one for one in _all_splits(summary) if not one[2].get("finished"))


def _all_splits(summary: SavepointSummary) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for uid, splits in sorted(summary.source_positions.items()):
        for name, split in sorted(splits.items()):
            yield uid, name, split


def text_of(moment: datetime) -> str:
    """As people read it."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
