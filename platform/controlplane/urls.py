"""Addresses: the pages are the dashboard's, `/api/v2/` is the series store's."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("api/v2/", include("controlplane.metrics.urls")),
    path("", include("dashboard.urls")),
]
