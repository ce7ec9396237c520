"""Dashboards as Grafana reads them: a few typed parts, and the JSON that they become.

    Dashboard > Row > Panel > query        Dashboard > Marks, an annotation       Choice, a variable

Shapes   the grid is 24 columns wide; panels fill their row from left to right. Panels have fixed
         ids in the order in which they stand, so that links to them stay right.
Source   Grafana, dashboard JSON model; `@grafana/schema` checks it (`make check-grafana`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

DATASOURCE: Json = {"type": "influxdb", "uid": "headwater-influxdb"}
SCHEMA_VERSION = 41
COLUMNS, HEIGHT = 24, 8
REFRESH = "10s"


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: a query, and how its numbers are told."""

    title: str
    query: str
    unit: str = "short"
    """One of Grafana's: short, ms, s, bytes, rowsps, percent, dateTimeAsIso …"""
    legend: str = "${__field.labels.job}"
    about: str = ""

    def json(self, number: int, place: Json) -> Json:
        """What Grafana reads."""
        custom: Json = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 10,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "none", "group": "A"},
        }
        defaults = {"unit": self.unit, "displayName": self.legend, "custom": custom}
        legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
        return {
            "id": number,
            "type": "timeseries",
            "title": self.title,
            "description": self.about,
            "datasource": DATASOURCE,
            "gridPos": place,
            "targets": [{"refId": "A", "datasource": DATASOURCE, "query": self.query}],
            "fieldConfig": {"defaults": defaults, "overrides": []},
            "options": {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}},
        }


@dataclass(frozen=True, slots=True)
class Choice:
    """A variable: what a query finds, of which one is chosen."""

    name: str
    label: str
    query: str

    def json(self) -> Json:
        """What Grafana reads."""
        return {
            "type": "query",
            "name": self.name,
            "label": self.label,
            "datasource": DATASOURCE,
            "query": {"query": self.query},
            "refresh": 2,  # when the time range changes
            "sort": 1,  # by name
            "multi": False,
            "includeAll": False,
            "hide": 0,
        }


@dataclass(frozen=True, slots=True)
class Marks:
    """Events that are drawn over every panel."""

    name: str
    color: str
    query: str

    def json(self) -> Json:
        """What Grafana reads."""
        return {
            "name": self.name,
            "enable": True,
            "hide": False,
            "iconColor": self.color,
            "datasource": DATASOURCE,
            "target": {"refId": "Anno", "query": self.query},
        }


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One page."""

    uid: str
    title: str
    about: str
    rows: Sequence[Sequence[Panel]]
    choices: Sequence[Choice] = ()
    marks: Sequence[Marks] = ()
    span: str = "now-1h"

    @property
    def panels(self) -> Mapping[int, Panel]:
        """By id."""
        return dict(enumerate((panel for row in self.rows for panel in row), 1))

    def json(self) -> Json:
        """What Grafana reads."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.about,
            "tags": ["headwater"],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,  # one crosshair over all panels
            "refresh": REFRESH,
            "time": {"from": self.span, "to": "now"},
            "timezone": "utc",
            "templating": {"list": [choice.json() for choice in self.choices]},
            "annotations": {"list": [marks.json() for marks in self.marks]},
            "panels": list(self._panels()),
            "links": [],
        }

    def _panels(self) -> Sequence[Json]:
        found, number = [], 0
        for line, row in enumerate(self.rows):
            width = COLUMNS // len(row)
            for at, panel in enumerate(row):
                number += 1
                place = {"x": at * width, "y": line * HEIGHT, "w": width, "h": HEIGHT}
                found.append(panel.json(number, place))
        return found
