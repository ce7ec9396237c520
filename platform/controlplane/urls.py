"""Addresses: the pages are the dashboard's, `/api/v2/` is the series store's."""

from __future__ import annotations

from importlib.util import find_spec

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = []
if find_spec("controlplane.metrics.urls"):
    urlpatterns.append(path("api/v2/", include("controlplane.metrics.urls")))
if find_spec("dashboard.urls"):
    urlpatterns.append(path("", include("dashboard.urls")))
