"""Clusters: the engines, their task managers and slots."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.backends.queries import clusters
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """Every cluster, asked just now."""
    return render(request, "cluster.html", {"section": "cluster", "clusters": clusters()})
