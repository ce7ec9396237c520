"""Settings of the platform: what the environment configures. For platform admins."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.access.lookup import require_platform_admin
from controlplane.configuration import parts, variables
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """Which variables are set; never to what."""
    require_platform_admin(request.user)
    context = {"section": "settings", "variables": variables(), "parts": parts()}
    return render(request, "settings.html", context)
