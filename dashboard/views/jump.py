"""What the search box finds, as JSON that it asks for while somebody types."""

from __future__ import annotations

from dataclasses import asdict

from django.contrib.auth.decorators import login_required
from django.http import JsonResponse
from django.views.decorators.http import require_safe

from controlplane.jobs.jump import jumps
from dashboard.views.requests import UserRequest

LONGEST = 100
"""Letters of a search; what follows them is not looked at."""


@login_required
@require_safe
def search(request: UserRequest) -> JsonResponse:
    """Jobs, operators, savepoints and replays whose name has this text in it."""
    found = jumps(request.user, request.GET.get("q", "")[:LONGEST])
    return JsonResponse({"found": [asdict(one) for one in found]})
