"""The only functions that change how a replay stands.

planned → starting → replaying → caught_up → cutting_over → promoted
             any of these → finished | abandoned | failed
                            promoted → rolling_back → rolled_back | failed
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from controlplane.jobs.models import Run, RunState
from controlplane.live import topics
from controlplane.live.publish import publish_on_commit
from controlplane.replay.models import HANDING_OVER, OPEN, Replay
from controlplane.snapshots.models import Savepoint


def started(replay: Replay, now: datetime) -> bool:
    """Its run is up: it replays."""
    return _move(replay, (Replay.Status.STARTING,), Replay.Status.REPLAYING, started_at=now)


def caught_up(replay: Replay, now: datetime) -> bool:
    """It has met the live job."""
    return _move(
        replay,
        (Replay.Status.REPLAYING,),
        Replay.Status.CAUGHT_UP,
        caught_up_at=now,
        eta_low=None,
        eta_high=None,
        note="",
        stalled_since=None,
    )


def abandoned(replay: Replay, now: datetime) -> bool:
    """Somebody ended it."""
    return _end(replay, Replay.Status.ABANDONED, now)


def failed(replay: Replay, sentence: str, now: datetime) -> bool:
    """It cannot go on."""
    return _end(replay, Replay.Status.FAILED, now, failure=sentence)


def cutting_over(replay: Replay, at: datetime | None = None) -> bool:
    """Its version begins to take the place of the live one; `at`: only from that event time on."""
    moved = (Replay.Status.CAUGHT_UP,), Replay.Status.CUTTING_OVER
    return _move(replay, *moved, failure="", cut_at=at)


def promoted(
    replay: Replay,
    now: datetime,
    *,
    old_run: Run,
    old_savepoint: Savepoint,
    new_run: Run,
    still_ms: int,
) -> bool:
    """Its version is the live one."""
    return _move(
        replay,
        (Replay.Status.CUTTING_OVER,),
        Replay.Status.PROMOTED,
        promoted_at=now,
        ended_at=now,
        old_run=old_run,
        new_run=new_run,
        old_savepoint=old_savepoint,
        stood_still_ms=still_ms,
    )


def not_promoted(replay: Replay, sentence: str, now: datetime) -> bool:
    """It could not take the place; while its own run goes on it may try again."""
    replay.refresh_from_db()
    if replay.run is not None and not replay.run.is_terminal:
        back = Replay.Status.CAUGHT_UP
        return _move(replay, (Replay.Status.CUTTING_OVER,), back, failure=sentence)
    moved = (Replay.Status.CUTTING_OVER,), Replay.Status.FAILED
    return _move(replay, *moved, failure=sentence, ended_at=now)


def rolling_back(replay: Replay) -> bool:
    """The version before begins to take its place again."""
    return _move(replay, (Replay.Status.PROMOTED,), Replay.Status.ROLLING_BACK)


def rolled_back(replay: Replay, now: datetime) -> bool:
    """The version before is the live one again."""
    return _move(replay, (Replay.Status.ROLLING_BACK,), Replay.Status.ROLLED_BACK, ended_at=now)


def not_rolled_back(replay: Replay, sentence: str, now: datetime) -> bool:
    """Neither version runs, and the sentence says what to do."""
    moved = (Replay.Status.ROLLING_BACK,), Replay.Status.FAILED
    return _move(replay, *moved, failure=sentence, ended_at=now)


def run_changed(run: Run, now: datetime) -> None:
    """The engine reports another state of a replay's run."""
    replay = Replay.objects.filter(run=run).first()
    # Whoever promotes it ends its run, and says what comes of it.
    if replay is None or replay.status in HANDING_OVER:
        return
    match run.state:
        case RunState.FAILED | RunState.LOST:
            failed(replay, run.failure or f"its run is {run.state.lower()}", now)
        case RunState.FINISHED:
            _end(replay, Replay.Status.FINISHED, now)
        # One that is cancelled while it starts is being taken back: its operation says why.
        case RunState.CANCELED if replay.status != Replay.Status.STARTING:
            abandoned(replay, now)
        case _:
            tell(replay)


def tell(replay: Replay, **figures: Any) -> None:
    """Send how it stands to the pages that follow it, when the transaction commits."""
    text = replay.failure or replay.note or None
    status = {"status": replay.status, "text": text, "stalled": replay.is_stalled}
    publish_on_commit(topics.replay(replay.pk), status | figures)


def _end(replay: Replay, status: Replay.Status, now: datetime, **values: Any) -> bool:
    return _move(replay, OPEN, status, ended_at=now, eta_low=None, eta_high=None, **values)


def _move(
    replay: Replay, old: tuple[Replay.Status, ...], new: Replay.Status, **values: Any
) -> bool:
    moved = Replay.objects.filter(pk=replay.pk, status__in=old).update(status=new, **values)
    replay.refresh_from_db()
    if moved:
        tell(replay)
    return bool(moved)
