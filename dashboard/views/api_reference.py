"""What programs can ask the API, as a page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.api.reference import reference
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """Every call, by subject."""
    return render(request, "api/reference.html", {"section": "api", "api": reference()})
