"""Django's entry to the dashboard."""

from __future__ import annotations

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """Pages over the control plane."""

    name = "dashboard"
