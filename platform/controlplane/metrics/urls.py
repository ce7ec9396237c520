"""Addresses below `/api/v2/`."""

from __future__ import annotations

from django.urls import path

from controlplane.metrics import views

urlpatterns = [
    path("write", views.write, name="write_points"),
    path("ping", views.ping, name="ping"),
]
