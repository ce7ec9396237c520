"""Which jobs of the list are asked for, in which order, and which page of them. Pure.

    ?f=team:payments state:running order   words of a name or team; keys narrow it
    &view=attention                        all, attention, running or stopped
    &sort=-in                              a column; with a minus, largest first
    &group=team                            headings: attention or team
    &page=2                                of PAGE rows

Errors   an unknown key, view, column or grouping is told in one sentence; then all jobs are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

PAGE = 50
"""Rows of one page: a page is to take less than a tenth of a second."""

VIEWS = ("all", "attention", "running", "stopped")
GROUPS = ("attention", "running", "stopped")
GROUPINGS = ("attention", "team")
COLUMNS = ("name", "in", "event_ms", "delay_ms", "ckpt_ms", "busy", "restarts")
KEYS = ("team", "state")


class Listed(Protocol):
    """What is known of every job, of whatever page."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def team(self) -> str:
        """Its team's."""

    @property
    def state(self) -> str:
        """Its state."""

    @property
    def group(self) -> str:
        """One of GROUPS."""

    @property
    def shown(self) -> str:
        """Its state as the page says it."""

    @property
    def views(self) -> Sequence[str]:
        """Those of VIEWS that it is in."""

    @property
    def figures(self) -> Mapping[str, Any]:
        """Latest figures."""


@dataclass(frozen=True, slots=True)
class FleetQuery:
    """A checked query."""

    text: str = ""
    view: str = "all"
    sort: str = "name"
    page: int = 1
    group: str = "attention"
    fault: str = ""
    """What could not be understood."""

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> FleetQuery:
        """From a query string."""
        text, view = asked.get("f", "").strip()[:200], asked.get("view", "") or "all"
        sort, page = asked.get("sort", "") or "name", asked.get("page", "")
        group = asked.get("group", "") or "attention"
        fault = _fault(text, view, sort, group)
        if fault:
            return cls(text=text, fault=fault)
        number = int(page) if page.isdecimal() and len(page) < 7 else 1
        return cls(text, view, sort, max(1, number), group)

    @property
    def column(self) -> str:
        """What it is sorted by."""
        return self.sort.removeprefix("-")

    def matches(self, job: Listed) -> bool:
        """Whether a job is asked for."""
        if self.fault:
            return True
        if self.view not in job.views:
            return False
        return all(_fits(word, job) for word in self.text.lower().split())

    def ordered(self, jobs: Sequence[Listed]) -> list[Any]:
        """By heading, and in each by column; what is unknown comes last, ties go by name."""
        found = sorted(jobs, key=lambda job: job.name)
        if self.column != "name":
            known = [job for job in found if _figure(job, self.column) is not None]
            unknown = [job for job in found if _figure(job, self.column) is None]
            known.sort(key=lambda job: _figure(job, self.column), reverse=self.sort[0] == "-")
            found = known + unknown
        elif self.sort == "-name":
            found.reverse()
        found.sort(key=lambda job: GROUPS.index(job.group))
        return sorted(found, key=lambda job: job.team) if self.group == "team" else found


def _fault(text: str, view: str, sort: str, group: str) -> str:
    for word in text.lower().split():
        key, colon, _ = word.partition(":")
        if colon and key not in KEYS:
            return f"the filter has no key {key}: use {' or '.join(KEYS)}, or a part of a name"
    if view not in VIEWS:
        return f"there is no view {view[:40]}: use {', '.join(VIEWS)}"
    if sort.removeprefix("-") not in COLUMNS:
        return f"jobs cannot be sorted by {sort[:40]}: use {', '.join(COLUMNS)}"
    if group not in GROUPINGS:
        return f"jobs cannot be grouped by {group[:40]}: use {' or '.join(GROUPINGS)}"
    return ""


def _fits(word: str, job: Listed) -> bool:
    key, colon, wanted = word.partition(":")
    if not colon:
        return word in f"{job.name} {job.team}".lower()
    return wanted in (
        (job.team.lower(),) if key == "team" else (job.state.lower(), job.shown.lower())
    )


def _figure(job: Listed, column: str) -> Any:
    return job.figures.get(column)
