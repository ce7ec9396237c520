"""What a replay's page says of old and new output: per output, along event time, by kind.

Order    outputs as in the plan, kinds of differences with the most rows first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from controlplane.moments import epoch_ms
from controlplane.replay.models import Difference, Replay, ReplayOutput

CELLS = 96
"""Of the strip along event time: as many as can be told apart."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of one output, or of one stretch of event time."""

    equal: int
    changed: int
    only_old: int
    only_new: int

    @property
    def compared(self) -> int:
        """All of them."""
        return self.equal + self.differ

    @property
    def differ(self) -> int:
        """Those that are not equal."""
        return self.changed + self.only_old + self.only_new

    @property
    def equal_pct(self) -> float | None:
        """The equal part; None when nothing was compared."""
        return 100.0 * self.equal / self.compared if self.compared else None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of event time."""

    start_ms: int
    counts: Counts

    @property
    def tone(self) -> str:
        """How it is drawn."""
        return "differ" if self.counts.differ else "equal"

    @property
    def label(self) -> str:
        """What it is, in words."""
        begin = datetime.fromtimestamp(self.start_ms / 1000, UTC)
        counts = self.counts
        return f"{begin:%d %b %Y %H:%M} UTC: {counts.compared} compared, {counts.differ} differ"


@dataclass(frozen=True, slots=True)
class ComparedOutput:
    """One output."""

    output: ReplayOutput
    counts: Counts
    strip: tuple[Stretch, ...]
    differences: tuple[Difference, ...]

    @property
    def until_ms(self) -> float | None:
        """Event time up to which both were compared."""
        return epoch_ms(self.output.compared_to)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that was compared."""

    outputs: tuple[ComparedOutput, ...]

    @property
    def open_differences(self) -> int:
        """Kinds of differences that nobody has accepted yet."""
        return sum(one.accepted_at is None for each in self.outputs for one in each.differences)

    @property
    def kinds(self) -> int:
        """All kinds of differences."""
        return sum(len(each.differences) for each in self.outputs)

    @property
    def has_begun(self) -> bool:
        """Whether anything was compared."""
        return any(each.counts.compared for each in self.outputs)

    @property
    def left_alone(self) -> tuple[ReplayOutput, ...]:
        """Outputs that are neither compared nor corrected."""
        return tuple(each.output for each in self.outputs if each.output.why_not)


def comparison_of(replay: Replay) -> Comparison:
    """What has been compared by now; two queries."""
    found = replay.outputs.prefetch_related("differences__accepted_by")
    return Comparison(tuple(_output(output) for output in found))


def _output(output: ReplayOutput) -> ComparedOutput:
    return ComparedOutput(
        output,
        _sum(output.hours),
        _strip(output.hours),
        tuple(_shown(one) for one in output.differences.all()),
    )


def _sum(hours: Sequence[Sequence[int]]) -> Counts:
    columns = [sum(hour[at] for hour in hours) for at in range(1, 5)]
    return Counts(*columns)


def _strip(hours: Sequence[Sequence[int]]) -> tuple[Stretch, ...]:
    """Hours, or equal stretches of several when there are many."""
    if not hours:
        return ()
    first, last = hours[0][0], hours[-1][0]
    width = max(1, -(-(last - first + 1) // CELLS))
    parts: dict[int, list[Sequence[int]]] = {}
    for hour in hours:
        parts.setdefault((hour[0] - first) // width, []).append(hour)
    return tuple(Stretch(part[0][0], _sum(part)) for _, part in sorted(parts.items()))


def _shown(difference: Difference) -> Difference:
    """With examples as people read them."""
    difference.examples = [_example(one) for one in difference.examples]
    return difference


def _example(example: dict[str, Any]) -> dict[str, Any]:
    keys = ", ".join(f"{name} {_text(value)}" for name, value in example["keys"].items())
    sides = {
        side: [_text(value) for value in (example[side] or {}).values()] for side in ("old", "new")
    }
    return {"at": example["at"] // 1000, "keys": keys, **sides}


def _text(value: Any) -> str:
    match value:
        case None:
            return "–"
        case {"ms": ms}:
            return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M}"
        case float():
            return f"{value:.6g}"
        case _:
            return str(value)
