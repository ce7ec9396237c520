"""What sources still have of the input that a snapshot's positions need; user code answers.

    splits in the manifest ──Source.missing──▶ SourceInput: gaps and what is not known, by source
    a gap, agreed to       ──▶ its split has ended where the snapshot left it

Sources live in the graph, which the job manager never unpickles: the build step asks them, and
leaves the answers as JSON.

Guarantee  what was agreed to holds for every attempt that begins at the snapshot, even if the
           input turns up again meanwhile: no two attempts read different rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from engine.checkpoint.format.entries import OperatorEntry, time_from_json, time_json
from engine.checkpoint.format.files import JsonObject
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.renames import Renames
from engine.connectors.contract import Json
from engine.elements import MIN_TIME, Micros
from engine.graph.jobgraph import JobGraph
from engine.operators.sources.source import SourceOperator
from engine.operators.span import moment_text

SHOWN = 3
"""Splits that a sentence names; of the others it tells the number."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Input of a split that is not there any more."""

    what: str
    """E.g. "lines from 1,235 on: no file /logs/a.jsonl"."""
    since: Micros
    """Event time up to which the split was read; MIN_TIME is unknown."""

    def __str__(self) -> str:
        if self.since == MIN_TIME:
            return self.what
        return f"event time from {moment_text(self.since)} on, {self.what}"


@dataclass(frozen=True, slots=True)
class SourceInput:
    """What one source has of what its stored positions need."""

    gaps: Mapping[str, Gap] = field(default_factory=dict)
    """By split."""
    unknown: int = 0
    """Splits of which it cannot tell."""

    @property
    def sentences(self) -> list[str]:
        """The gaps for people; of many the first ones, and how many more there are."""
        named = [f"split '{split}', {gap}" for split, gap in sorted(self.gaps.items())[:SHOWN]]
        more = len(self.gaps) - len(named)
        return [*named, *([f"and {more} more splits"] if more else [])]

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        gaps = {split: [gap.what, time_json(gap.since)] for split, gap in self.gaps.items()}
        return {"gaps": gaps, "unknown": self.unknown}

    @classmethod
    def from_json(cls, value: JsonObject) -> SourceInput:
        """Read what `to_json` gave."""
        gaps = {
            split: Gap(str(what), time_from_json(since))
            for split, (what, since) in value["gaps"].items()
        }
        return cls(gaps, int(value["unknown"]))


Inputs = Mapping[str, SourceInput]
"""By uid of the source."""
Positions = Mapping[str, Mapping[str, tuple[Json, Micros]]]
"""By uid and split: where reading goes on, and how far event time had come."""


def positions_of(manifest: Manifest) -> Positions:
    """Where the sources of a snapshot go on; splits that have ended need nothing."""
    return {
        entry.uid: {
            id_: (split.position, split.watermark)
            for id_, split in entry.splits.items()
            if not split.finished
        }
        for entry in manifest.operators
        if entry.splits
    }


def look(graph: JobGraph, positions: Positions) -> Inputs:
    """Ask every source of a graph that has stored positions. Raises SourceError."""
    return {
        chained.uid: _look(chained.operator, positions[chained.uid])
        for vertex in graph.vertices
        for chained in vertex.operators
        if isinstance(chained.operator, SourceOperator) and chained.uid in positions
    }


def ended(manifest: Manifest, gaps: Mapping[str, Collection[str]], renames: Renames) -> Manifest:
    """The manifest with splits that have ended: their input is gone.

    `gaps`: by the uid that the job has for the source.
    """
    operators = tuple(
        _ended(entry, gaps.get(renames.names.get(entry.uid, entry.uid), ()))
        for entry in manifest.operators
    )
    return replace(manifest, operators=operators)


def _ended(entry: OperatorEntry, gaps: Collection[str]) -> OperatorEntry:
    splits = {
        id_: replace(split, finished=True) if id_ in gaps else split
        for id_, split in entry.splits.items()
    }
    return replace(entry, splits=splits)


def _look(operator: SourceOperator, splits: Mapping[str, tuple[Json, Micros]]) -> SourceInput:
    gaps, unknown = {}, 0
    for split, (position, since) in splits.items():
        missing = operator.source.missing(split, position)
        if missing is None:
            unknown += 1
        elif missing:
            gaps[split] = Gap(missing, since)
    return SourceInput(gaps, unknown)
