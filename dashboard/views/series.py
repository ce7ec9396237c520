"""Series for the plots of a job, as JSON that the page asks for every few seconds."""

from __future__ import annotations

from dataclasses import asdict

from django.contrib.auth.decorators import login_required
from django.http import JsonResponse
from django.views.decorators.http import require_safe

from controlplane.access.lookup import job_for, replay_for
from controlplane.jobs.history import history_of
from controlplane.metrics.queries import output_choices, output_lines
from dashboard.views.requests import UserRequest

DIGITS = 15
"""Of epoch ms, some thirty thousand years."""


@login_required
@require_safe
def history(request: UserRequest, name: str) -> JsonResponse:
    """How a job ran and what happened: in the last `minutes`, or `from` one time `to` another."""
    job = job_for(request.user, name)
    start, stop, minutes = (_number(request, part) for part in ("from", "to", "minutes"))
    return JsonResponse(history_of(job, start, stop, minutes))


def _number(request: UserRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= DIGITS else None


@login_required
@require_safe
def output(request: UserRequest, name: str) -> JsonResponse:
    """What a job writes, and what could be shown; with `replay`, what that writes beside it."""
    job = job_for(request.user, name)
    replay_id = request.GET.get("replay", "")
    replay = replay_for(request.user, int(replay_id)).name if replay_id.isdecimal() else ""
    choices = output_choices(job)
    lines = output_lines(choices, request.GET.get("choice", ""), replay)
    return JsonResponse({"series": list(map(asdict, lines)), "choices": list(map(asdict, choices))})
