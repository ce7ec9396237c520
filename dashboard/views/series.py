"""Series for the plots of a job, as JSON that the page asks for every few seconds."""

from __future__ import annotations

from dataclasses import asdict

from django.contrib.auth.decorators import login_required
from django.http import JsonResponse
from django.views.decorators.http import require_safe

from controlplane.access.lookup import job_for, replay_for
from controlplane.metrics.queries import job_history, output_choices, output_lines
from controlplane.moments import now_ms
from dashboard.views.requests import UserRequest

MAX_MINUTES = 7 * 24 * 60


@login_required
@require_safe
def history(request: UserRequest, name: str) -> JsonResponse:
    """Rates, watermark delay and load of the last minutes."""
    job = job_for(request.user, name)
    asked = request.GET.get("minutes", "")
    minutes = min(MAX_MINUTES, max(1, int(asked))) if asked.isdecimal() else 10
    until_ms = now_ms()
    found = job_history(job, until_ms - minutes * 60_000, until_ms)
    return JsonResponse(asdict(found))


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
