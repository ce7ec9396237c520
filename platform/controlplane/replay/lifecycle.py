"""The only functions that change how a replay stands.

planned → starting → replaying → caught_up → finished
             any of these → abandoned | failed
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from controlplane.jobs.models import Run, RunState
from controlplane.live import topics
from controlplane.live.publish import publish_on_commit
from controlplane.replay.models import OPEN, Replay


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
    )


def abandoned(replay: Replay, now: datetime) -> bool:
    """Somebody ended it."""
    return _end(replay, Replay.Status.ABANDONED, now)


def failed(replay: Replay, sentence: str, now: datetime) -> bool:
    """It cannot go on."""
    return _end(replay, Replay.Status.FAILED, now, failure=sentence)


def run_changed(run: Run, now: datetime) -> None:
    """The engine reports another state of a replay's run."""
    replay = Replay.objects.filter(run=run).first()
    if replay is None:
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
    status = {"status": replay.status, "text": replay.failure or replay.note or None}
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
