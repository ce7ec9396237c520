"""What a comparison found, in parts that can be added up.

    Found ──< hour of event time     how many rows are equal, changed, only old, only new
                └───< Group          its differences of one kind: the same fields changed

Units    hours are the µs since 1970 UTC at which they begin.
Order    examples are those with the smallest keys of the earliest times, however parts are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

EXAMPLES = 5
"""Kept of each group: enough to see what kind of difference it is."""

MAX_GROUPS = 50
"""Groups kept apart, of all hours and of each; what else differs is counted only."""


class Verdict(StrEnum):
    """How a row of the old output relates to the new one."""

    EQUAL = "equal"
    CHANGED = "changed"
    ONLY_OLD = "only_old"
    ONLY_NEW = "only_new"


VERDICTS = tuple(Verdict)

Kind = tuple[Verdict, tuple[str, ...]]
"""The verdict, and the fields that differ; none unless it is CHANGED."""

Example = Mapping[str, Any]
"""{"at": µs, "keys": {…}, "old": {…} | None, "new": {…} | None}, with the fields that differ."""


@dataclass(frozen=True, slots=True)
class Group:
    """Differences of one kind."""

    rows: int
    first_us: int
    """Event time of the first of them."""
    examples: tuple[Example, ...] = ()

    def plus(self, other: Group) -> Group:
        """Both together."""
        examples = sorted((*self.examples, *other.examples), key=_place)[:EXAMPLES]
        first = min(self.first_us, other.first_us)
        return Group(self.rows + other.rows, first, tuple(examples))


Groups = Mapping[Kind, Group]


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that was compared."""

    hours: Mapping[int, tuple[int, int, int, int]] = field(default_factory=dict)
    """Per hour, in the order of `VERDICTS`."""
    differing: Mapping[int, Groups] = field(default_factory=dict)
    """Per hour in which something differs."""

    @property
    def groups(self) -> Groups:
        """Those of all hours, added up."""
        return added_up(self.differing.values())

    def count(self, verdict: Verdict) -> int:
        """How many rows there are of a verdict."""
        at = VERDICTS.index(verdict)
        return sum(counts[at] for counts in self.hours.values())

    @property
    def compared(self) -> int:
        """Rows of either side, those that met counted once."""
        return sum(map(sum, self.hours.values()))

    def plus(self, other: Found) -> Found:
        """Both together; they are of different rows."""
        hours = dict(self.hours)
        for hour, counts in other.hours.items():
            before = hours.get(hour, (0, 0, 0, 0))
            a, b, c, d = (x + y for x, y in zip(before, counts, strict=True))
            hours[hour] = (a, b, c, d)
        differing = dict(self.differing)
        for hour, groups in other.differing.items():
            differing[hour] = added_up([differing.get(hour, {}), groups])
        return Found(hours, differing)


def total(parts: Iterable[Found]) -> Found:
    """All parts together."""
    found = Found()
    for part in parts:
        found = found.plus(part)
    return found


def added_up(parts: Iterable[Groups]) -> Groups:
    """Groups of several hours, or of parts of one, together."""
    groups: dict[Kind, Group] = {}
    for part in parts:
        for kind, group in part.items():
            groups[kind] = groups[kind].plus(group) if kind in groups else group
    return _largest(groups)


def _largest(groups: Groups) -> Groups:
    """Those with the most rows, should code have changed everything in every way."""
    ranked = sorted(groups.items(), key=lambda item: (-item[1].rows, item[0]))
    return dict(ranked[:MAX_GROUPS])


def _place(example: Example) -> tuple[int, str]:
    return int(example["at"]), str(sorted(example["keys"].items()))
