"""What changed in the fleet lately, as a timeline and as a list."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from controlplane.jobs.changes import HOURS, Change, Changes, fleet_changes
from dashboard.exports import download
from dashboard.views.requests import UserRequest, chosen

COLUMNS = ("at_ms", "job", "title", "text", "tone", "url")


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """The list, newest first."""
    found = _changes(request)
    return render(
        request,
        "jobs/changes.html",
        {
            "section": "jobs",
            "changes": found,
            "rows": [(event, url_of(event)) for event in found.events],
            "ranges": HOURS,
        },
    )


@login_required
@require_safe
def series(request: UserRequest) -> JsonResponse:
    """What the timeline draws, asked for every few seconds."""
    found = _changes(request)
    return JsonResponse(
        {
            "from_ms": found.from_ms,
            "to_ms": found.to_ms,
            "events": list(map(_event, found.events)),
            "rate": found.rate,
            "rate_missing": found.rate_missing,
        }
    )


@login_required
@require_safe
def export(request: UserRequest, shape: str) -> HttpResponseBase:
    """The list as a file."""
    return download(shape, "changes", COLUMNS, map(_event, _changes(request).events))


def url_of(event: Change) -> str:
    """The page that says more."""
    return reverse(f"dashboard:{event.page}", args=[event.job])


def _event(event: Change) -> dict[str, Any]:
    return asdict(event) | {"url": url_of(event)}


def _changes(request: UserRequest) -> Changes:
    return fleet_changes(request.user, chosen(request, "hours", HOURS, "6"))
