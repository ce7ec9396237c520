"""What people do with a replay that goes on: throttle, pause, accept, promote, roll back."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.access.lookup import difference_for, replay_for
from controlplane.replay import actions
from controlplane.replay.models import Replay
from controlplane.replay.tolerances import set_tolerance
from controlplane.replay.tuning import Tuning, tune_replay
from dashboard.answers import checked, said, started
from dashboard.forms import AbandonForm, AcceptForm, LimitForm, PauseForm
from dashboard.replay_forms import PromoteForm, ToleranceForm, TuneForm
from dashboard.views.requests import UserRequest


@login_required
@require_POST
def limit(request: UserRequest, replay_id: int) -> HttpResponse:
    """Change how fast it may read."""
    replay = replay_for(request.user, replay_id)
    wished = checked(LimitForm(request.POST))["rows_per_second"]
    actions.limit_replay(replay, request.user, wished)
    return said(request, f"{replay} reads {wished.words}", _page(replay))


@login_required
@require_POST
def pause(request: UserRequest, replay_id: int) -> HttpResponse:
    """Let it read nothing, or go on."""
    replay = replay_for(request.user, replay_id)
    paused = checked(PauseForm(request.POST))["paused"]
    actions.pause_replay(replay, request.user, paused=paused)
    return said(request, f"{replay} {'is paused' if paused else 'goes on'}", _page(replay))


@login_required
@require_POST
def tune(request: UserRequest, replay_id: int) -> HttpResponse:
    """Change when it has caught up, and how long it can be rolled back."""
    replay = replay_for(request.user, replay_id)
    tune_replay(replay, request.user, Tuning(**checked(TuneForm(request.POST))))
    return said(request, f"{replay}: saved", _page(replay))


@login_required
@require_POST
def tolerate(request: UserRequest, replay_id: int) -> HttpResponse:
    """Change how far the numbers of a column may be apart."""
    replay = replay_for(request.user, replay_id)
    asked = checked(ToleranceForm(request.POST))
    set_tolerance(replay, request.user, **asked)
    return said(request, f"{asked['output']} is compared again", _page(replay))


@login_required
@require_POST
def accept(request: UserRequest, replay_id: int) -> HttpResponse:
    """Accept one kind of differences."""
    replay = replay_for(request.user, replay_id)
    difference = difference_for(replay, checked(AcceptForm(request.POST))["difference"])
    actions.accept_difference(difference, request.user)
    return said(request, f"accepted: {difference.rows:,} rows", _page(replay))


@login_required
@require_POST
def promote(request: UserRequest, replay_id: int) -> HttpResponse:
    """Let its version take the place of the live one."""
    replay = replay_for(request.user, replay_id)
    asked = checked(PromoteForm(request.POST, name=replay.name))
    operation = actions.promote_replay(
        replay, request.user, idempotency_key=asked["idempotency_key"], at=asked["at"]
    )
    return started(request, operation, _page(replay))


@login_required
@require_POST
def roll_back(request: UserRequest, replay_id: int) -> HttpResponse:
    """Let the version before take its place again."""
    replay = replay_for(request.user, replay_id)
    key = _confirmed(request, replay)
    operation = actions.rollback_replay(replay, request.user, idempotency_key=key)
    return started(request, operation, _page(replay))


def _confirmed(request: UserRequest, replay: Replay) -> str:
    """The key of the wish, when the name was typed. Raises Refused."""
    asked = checked(AbandonForm(request.POST, name=replay.name))
    return str(asked["idempotency_key"])


def _page(replay: Replay) -> str:
    return reverse("dashboard:replay", args=[replay.pk])
