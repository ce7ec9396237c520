"""What a comparison of two snapshots found, as values and as JSON.

    Difference ─▶ StateDifference per state: rows that are equal, changed, only left, only right
               ─▶ SplitDifference per split of a source whose place differs

Shapes   examples hold values as `plain_values` writes them once they have been JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.checkpoint.format.entries import split_from_json, split_json
from engine.checkpoint.inspection.plain_values import plain
from engine.operators.sources.source import SplitState

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StateDifference:
    """One state of one operator. Numbers are rows."""

    uid: str
    state: str
    equal: int = 0
    changed: int = 0
    only_left: int = 0
    only_right: int = 0
    reason: str = ""
    """Why rows could not be compared one by one; empty when they were."""
    examples: Sequence[Mapping[str, object]] = ()
    """Some rows that differ: identity, then `left` and `right`, each a row or None."""

    @property
    def is_equal(self) -> bool:
        """Whether both sides hold the same."""
        return not (self.changed or self.only_left or self.only_right or self.reason)

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        return {
            "operator": self.uid,
            "state": self.state,
            "equal": self.equal,
            "changed": self.changed,
            "only_left": self.only_left,
            "only_right": self.only_right,
            "reason": self.reason,
            "examples": [plain(example) for example in self.examples],
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> StateDifference:
        """Read what `to_json` gave."""
        return cls(
            uid=str(value["operator"]),
            state=str(value["state"]),
            equal=int(value["equal"]),
            changed=int(value["changed"]),
            only_left=int(value["only_left"]),
            only_right=int(value["only_right"]),
            reason=str(value["reason"]),
            examples=tuple(value["examples"]),
        )


@dataclass(frozen=True, slots=True)
class SplitDifference:
    """One split of a source whose place differs."""

    uid: str
    split: str
    left: SplitState | None
    right: SplitState | None

    def to_json(self) -> JsonObject:
        """Return plain JSON; a split that is not there is null."""
        return {
            "operator": self.uid,
            "split": self.split,
            "left": self.left and split_json(self.left),
            "right": self.right and split_json(self.right),
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> SplitDifference:
        """Read what `to_json` gave."""
        left, right = value["left"], value["right"]
        return cls(
            uid=str(value["operator"]),
            split=str(value["split"]),
            left=left and split_from_json(left),
            right=right and split_from_json(right),
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """Everything in which two snapshots differ."""

    states: tuple[StateDifference, ...]
    splits: tuple[SplitDifference, ...]

    @property
    def is_equal(self) -> bool:
        """Whether both hold the same state and the same places in the input."""
        return not self.splits and all(state.is_equal for state in self.states)

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        return {
            "equal": self.is_equal,
            "states": [state.to_json() for state in self.states],
            "splits": [split.to_json() for split in self.splits],
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> Difference:
        """Read what `to_json` gave."""
        return cls(
            states=tuple(StateDifference.from_json(state) for state in value["states"]),
            splits=tuple(SplitDifference.from_json(split) for split in value["splits"]),
        )
