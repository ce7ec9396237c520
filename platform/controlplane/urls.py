"""Addresses: pages, `/api/v1/` for programs, `/api/v2/` of the series store, `/metrics`."""

from __future__ import annotations

from django.urls import include, path

from controlplane.api.application import urls as api
from controlplane.metrics.views import metrics

urlpatterns = [
    path("api/v1/", api),
    path("api/v2/", include("controlplane.metrics.urls")),
    path("metrics", metrics, name="prometheus"),
    path("", include("dashboard.urls")),
]
