"""What subtasks store and a manifest lists: states, splits and staged output, by operator.

    SubtaskSnapshot (one acknowledgement) --OperatorPart by uid, merged--> OperatorEntry

Shapes   a watermark of null means that event time is not known yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.checkpoint.format.files import JsonObject, StateFile
from engine.checkpoint.format.shared import is_written_by
from engine.connectors.contract import Json
from engine.elements import MAX_TIME, MIN_TIME, Micros
from engine.graph.jobgraph import TaskId
from engine.operators.sources.source import SplitState
from engine.state.contract import StateKind


@dataclass(frozen=True, slots=True)
class StateEntry:
    """One state of one operator: its types, and its files. A state without rows has no file."""

    name: str
    kind: StateKind
    keys: Mapping[str, str]
    values: Mapping[str, str]
    files: tuple[StateFile, ...] = ()

    @property
    def rows(self) -> int:
        """Rows in all files; in layers, also those whose place later ones have taken."""
        return sum(file.rows for file in self.files if not file.is_removed)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def is_layered(self) -> bool:
        """Whether it has layers, of which later ones take the place of earlier ones."""
        return any(file.layer is not None and file.layer.number for file in self.files)

    def written_bytes(self, checkpoint_id: int) -> int:
        """Bytes that were new in a checkpoint; the others are files of earlier ones."""
        return sum(file.size_bytes for file in self.files if is_written_by(checkpoint_id, file))

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        return {
            "name": self.name,
            "kind": self.kind.value,
            "keys": dict(self.keys),
            "values": dict(self.values),
            "rows": self.rows,
            "size_bytes": self.size_bytes,
            "files": [file.to_json() for file in self.files],
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> StateEntry:
        """Read what `to_json` gave."""
        return cls(
            name=str(value["name"]),
            kind=StateKind(value["kind"]),
            keys=dict(value["keys"]),
            values=dict(value["values"]),
            files=tuple(StateFile.from_json(file) for file in value["files"]),
        )


@dataclass(frozen=True, slots=True)
class OperatorPart:
    """What one subtask of one operator put into a snapshot."""

    uid: str
    watermark: Micros
    states: tuple[StateEntry, ...] = ()
    splits: Mapping[str, SplitState] = field(default_factory=dict)
    committables: tuple[Json, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes of all states: Flink's state_size."""
        return sum(state.size_bytes for state in self.states)

    def written_bytes(self, checkpoint_id: int) -> int:
        """Bytes that this checkpoint has written: Flink's checkpointed_size."""
        return sum(state.written_bytes(checkpoint_id) for state in self.states)

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        return {"uid": self.uid, **_contents_json(self)}

    @classmethod
    def from_json(cls, value: JsonObject) -> OperatorPart:
        """Read what `to_json` gave."""
        return cls(uid=str(value["uid"]), **_contents(value))


@dataclass(frozen=True, slots=True)
class SnapshotTiming:
    """How long the parts of a subtask's snapshot took."""

    start_delay_ms: int = 0
    """From the trigger to the first barrier that reached the subtask."""
    alignment_ms: int = 0
    """From the first barrier to the last one."""
    sync_ms: int = 0
    """The flow stood still while references were frozen and sinks prepared."""
    async_ms: int = 0
    """Writing the files, off the subtask's thread."""


@dataclass(frozen=True, slots=True)
class SubtaskSnapshot:
    """The acknowledgement of one subtask: all its files lie in the folder."""

    task: TaskId
    checkpoint_id: int
    operators: tuple[OperatorPart, ...]
    timing: SnapshotTiming = SnapshotTiming()

    @property
    def size_bytes(self) -> int:
        """Bytes of state of this subtask."""
        return sum(part.size_bytes for part in self.operators)

    @property
    def written_bytes(self) -> int:
        """Those that this checkpoint has written; less than all when it builds on another."""
        return sum(part.written_bytes(self.checkpoint_id) for part in self.operators)

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        timing = self.timing
        return {
            "vertex": self.task.vertex,
            "subtask": self.task.subtask,
            "checkpoint_id": self.checkpoint_id,
            "operators": [part.to_json() for part in self.operators],
            "timing": {
                "start_delay_ms": timing.start_delay_ms,
                "alignment_ms": timing.alignment_ms,
                "sync_ms": timing.sync_ms,
                "async_ms": timing.async_ms,
            },
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> SubtaskSnapshot:
        """Read what `to_json` gave."""
        return cls(
            task=TaskId(str(value["vertex"]), int(value["subtask"])),
            checkpoint_id=int(value["checkpoint_id"]),
            operators=tuple(OperatorPart.from_json(part) for part in value["operators"]),
            timing=SnapshotTiming(**value["timing"]),
        )


@dataclass(frozen=True, slots=True)
class OperatorEntry:
    """Everything that a snapshot holds of one operator, over all its subtasks."""

    uid: str
    name: str
    vertex: str
    parallelism: int
    max_parallelism: int
    watermark: Micros
    states: tuple[StateEntry, ...] = ()
    splits: Mapping[str, SplitState] = field(default_factory=dict)
    committables: tuple[Json, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be lost without this operator."""
        return not (self.states or self.splits or self.committables)

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        return {
            "uid": self.uid,
            "name": self.name,
            "vertex": self.vertex,
            "parallelism": self.parallelism,
            "max_parallelism": self.max_parallelism,
            **_contents_json(self),
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> OperatorEntry:
        """Read what `to_json` gave."""
        return cls(
            uid=str(value["uid"]),
            name=str(value["name"]),
            vertex=str(value["vertex"]),
            parallelism=int(value["parallelism"]),
            max_parallelism=int(value["max_parallelism"]),
            **_contents(value),
        )


def merge_parts(parts: Sequence[OperatorPart]) -> OperatorPart:
    """Put together what all subtasks of one operator stored, in subtask order."""
    names = sorted({state.name for part in parts for state in part.states})
    return OperatorPart(
        uid=parts[0].uid,
        watermark=min(part.watermark for part in parts),
        states=tuple(_merge_states(name, parts) for name in names),
        splits={id_: part.splits[id_] for part in parts for id_ in sorted(part.splits)},
        committables=tuple(value for part in parts for value in part.committables),
    )


def time_json(time: Micros) -> int | None:
    """A watermark as JSON: null when not known yet."""
    return None if time == MIN_TIME else int(time)


def time_from_json(value: int | None) -> Micros:
    """Read what `time_json` gave."""
    return MIN_TIME if value is None else Micros(min(int(value), MAX_TIME))


def _merge_states(name: str, parts: Iterable[OperatorPart]) -> StateEntry:
    found = [state for part in parts for state in part.states if state.name == name]
    files = tuple(file for state in found for file in state.files)
    first = found[0]
    return StateEntry(name, first.kind, first.keys, first.values, files)


def _contents_json(part: OperatorPart | OperatorEntry) -> JsonObject:
    return {
        "watermark": time_json(part.watermark),
        "states": [state.to_json() for state in part.states],
        "splits": {id_: split_json(split) for id_, split in part.splits.items()},
        "committables": list(part.committables),
    }


def _contents(value: JsonObject) -> JsonObject:
    return {
        "watermark": time_from_json(value["watermark"]),
        "states": tuple(StateEntry.from_json(state) for state in value["states"]),
        "splits": {id_: split_from_json(split) for id_, split in value["splits"].items()},
        "committables": tuple(value["committables"]),
    }


def split_json(split: SplitState) -> JsonObject:
    """Return a place in the input as plain JSON; its generator only where it has one."""
    return {
        "position": split.position,
        "watermark": time_json(split.watermark),
        "idle": split.idle,
        "finished": split.finished,
        **({} if split.generator is None else {"generator": split.generator}),
    }


def split_from_json(value: JsonObject) -> SplitState:
    """Read what `split_json` gave."""
    return SplitState(
        position=value["position"],
        watermark=time_from_json(value["watermark"]),
        idle=bool(value["idle"]),
        finished=bool(value["finished"]),
        generator=value.get("generator"),
    )
