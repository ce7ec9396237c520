"""Series for the plots of a job, as JSON that the page asks for every few seconds."""

from __future__ import annotations

from dataclasses import asdict

from django.contrib.auth.decorators import login_required
from django.http import JsonResponse
from django.views.decorators.http import require_safe

from controlplane.access.lookup import job_for, replay_for
from controlplane.jobs.changes import job_changes
from controlplane.metrics.contract import DAY_MS, MINUTE_MS
from controlplane.metrics.queries import job_history, output_choices, output_lines
from controlplane.moments import now_ms
from controlplane.snapshots.checkpoint_bars import checkpoint_bars
from dashboard.views.requests import UserRequest

LONGEST_MS = 7 * DAY_MS
SHORTEST_MS = 1_000
USUAL_MS = 10 * MINUTE_MS
DIGITS = 15
"""Of epoch ms, some thirty thousand years."""


@login_required
@require_safe
def history(request: UserRequest, name: str) -> JsonResponse:
    """How a job ran and what happened: in the last `minutes`, or `from` one time `to` another."""
    job = job_for(request.user, name)
    start_ms, stop_ms = _asked(request)
    return JsonResponse(
        {
            "from_ms": start_ms,
            "to_ms": stop_ms,
            **asdict(job_history(job, start_ms, stop_ms)),
            "checkpoints": list(map(asdict, checkpoint_bars(job, start_ms, stop_ms))),
            "events": list(map(asdict, job_changes(job, start_ms, stop_ms))),
        }
    )


def _asked(request: UserRequest) -> tuple[int, int]:
    """A stretch of time that ends by now, no longer than is kept; nonsense is the usual one."""
    start, stop, minutes = (_number(request, name) for name in ("from", "to", "minutes"))
    now = now_ms()
    if start is None or stop is None:
        return now - _within(USUAL_MS if minutes is None else minutes * MINUTE_MS), now
    until_ms = min(now, stop)
    return until_ms - _within(until_ms - start), until_ms


def _within(length_ms: int) -> int:
    return min(LONGEST_MS, max(SHORTEST_MS, length_ms))


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
