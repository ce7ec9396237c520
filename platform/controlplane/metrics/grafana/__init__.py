"""Grafana: dashboards built from one place, and the links that lead to them."""
