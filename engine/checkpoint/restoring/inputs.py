"""What sources still have of the input that a snapshot's positions need; user code answers.

    splits in the manifest ──Source.missing──▶ SourceInput: gaps and what is not known, by source
    a gap, agreed to       ──▶ its split has ended where the snapshot left it
    a start, chosen        ──Source.position_at──▶ its splits begin there

Sources live in the graph, which the job manager never unpickles: the build step asks them, and
leaves the answers as JSON.

Guarantee  what was agreed to and chosen holds for every attempt that begins at the snapshot, even
           if the input turns up again meanwhile: no two attempts read different rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from engine.checkpoint.format.entries import OperatorEntry, time_from_json, time_json
from engine.checkpoint.format.files import JsonObject
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.renames import Renames
from engine.checkpoint.restoring.starts import Starts, check_starts, in_words
from engine.connectors.contract import Json, Source
from engine.elements import MIN_TIME, Micros
from engine.graph.jobgraph import JobGraph
from engine.operators.sources.source import SourceOperator, SplitState
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
    starts: Mapping[str, Json] = field(default_factory=dict)
    """By split: the position that somebody has chosen instead of the stored one."""
    choice: str = ""
    """What that means, for people; empty: nothing was chosen."""

    @property
    def sentences(self) -> list[str]:
        """The gaps for people; of many the first ones, and how many more there are."""
        named = [f"split '{split}', {gap}" for split, gap in sorted(self.gaps.items())[:SHOWN]]
        more = len(self.gaps) - len(named)
        return [*named, *([f"and {more} more splits"] if more else [])]

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        gaps = {split: [gap.what, time_json(gap.since)] for split, gap in self.gaps.items()}
        return {
            "gaps": gaps,
            "unknown": self.unknown,
            "starts": dict(self.starts),
            "choice": self.choice,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> SourceInput:
        """Read what `to_json` gave."""
        gaps = {
            split: Gap(str(what), time_from_json(since))
            for split, (what, since) in value["gaps"].items()
        }
        return cls(gaps, int(value["unknown"]), dict(value["starts"]), str(value["choice"]))


@dataclass(frozen=True, slots=True)
class Chosen:
    """What becomes of splits of a source: decided before the job starts."""

    starts: Mapping[str, Json] = field(default_factory=dict)
    """By split: another position."""
    ended: Collection[str] = ()
    """Splits without input."""


Inputs = Mapping[str, SourceInput]
"""By uid of the source."""
Positions = Mapping[str, Mapping[str, tuple[Json, Micros]]]
"""By uid and split: where reading goes on, and how far event time had come."""


def positions_of(manifest: Manifest, starts: Starts) -> Positions:
    """Where the sources of a snapshot go on; splits that have ended need nothing.

    Unless they shall begin elsewhere. Raises RestoreError.
    """
    check_starts(starts, manifest)
    return {
        entry.uid: {
            id_: (split.position, split.watermark)
            for id_, split in entry.splits.items()
            if not split.finished or entry.uid in starts
        }
        for entry in manifest.operators
        if entry.splits
    }


def look(graph: JobGraph, positions: Positions, starts: Starts) -> Inputs:
    """Ask every source of a graph that has stored positions. Raises SourceError.

    `starts`: where some shall begin instead.
    """
    return {
        chained.uid: _look(chained.operator.source, positions[chained.uid], chained.uid, starts)
        for vertex in graph.vertices
        for chained in vertex.operators
        if isinstance(chained.operator, SourceOperator) and chained.uid in positions
    }


def begun(manifest: Manifest, chosen: Mapping[str, Chosen], renames: Renames) -> Manifest:
    """The manifest with splits that have ended, or begin elsewhere; `chosen`: by the job's uid."""
    operators = tuple(
        _begun(entry, chosen.get(renames.names.get(entry.uid, entry.uid), Chosen()))
        for entry in manifest.operators
    )
    return replace(manifest, operators=operators)


def _begun(entry: OperatorEntry, chosen: Chosen) -> OperatorEntry:
    splits = dict(entry.splits)
    for id_, position in chosen.starts.items():
        splits[id_] = SplitState(position)
    for id_ in chosen.ended:
        splits[id_] = replace(splits[id_], finished=True)
    # Event time of the source begins anew, so that operators which start empty see all of it.
    watermark = MIN_TIME if chosen.starts else entry.watermark
    return replace(entry, splits=splits, watermark=watermark)


def _look(
    source: Source, splits: Mapping[str, tuple[Json, Micros]], uid: str, starts: Starts
) -> SourceInput:
    gaps, unknown, chosen = {}, 0, {}
    for split, (stored, since) in splits.items():
        position = stored
        if uid in starts:
            position = chosen[split] = source.position_at(split, stored, starts[uid])
        missing = source.missing(split, position)
        if missing is None:
            unknown += 1
        elif missing:
            gaps[split] = Gap(missing, MIN_TIME if uid in starts else since)
    choice = ""
    if uid in starts:
        read_to = min((since for _, since in splits.values()), default=MIN_TIME)
        choice = in_words(starts[uid], read_to)
    return SourceInput(gaps, unknown, chosen, choice)
