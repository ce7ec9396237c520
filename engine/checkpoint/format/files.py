"""The files of a state in a manifest: each a whole table, or a layer of one.

    layer 0   the table as it was once                        its rows stand, unless …
    layer 1   rows that came since, and keys that are gone    … a later layer takes their place
    layer 2   …

Shapes   the layers of one subtask are a chain; chains of different subtasks have nothing in common.
         A file without a layer is a whole table, as in format 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.checkpoint.storage.folder import Stored
from engine.keygroups import KeyGroupRange

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Layer:
    """The place of a file in its chain.

    To read a chain: of every file that is not `removed` take the rows whose time is greater than
    `after`, and leave out those that agree with a row of a file of a higher number, of its `rows`
    or `removed` alike, in all columns of that file's `by`.
    """

    number: int
    subtask: int
    """Which one wrote it. Its chain are the files of the same subtask."""
    by: tuple[str, ...] = ()
    removed: bool = False
    """Whether it holds only what is gone: the columns `by`."""
    time: str | None = None
    """The column that the next two are about: slice_end or event_time."""
    after: int | None = None
    """Rows whose time is this or less have left the state."""
    last: int | None = None
    """The greatest time in the file."""

    def to_json(self) -> JsonObject:
        """Return plain JSON, without what does not apply."""
        return {
            "number": self.number,
            "subtask": self.subtask,
            **({"by": list(self.by)} if self.by else {}),
            **({"removed": True} if self.removed else {}),
            **({} if self.time is None else {"time": self.time}),
            **({} if self.after is None else {"after": self.after}),
            **({} if self.last is None else {"last": self.last}),
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> Layer:
        """Read what `to_json` gave."""
        time, after, last = value.get("time"), value.get("after"), value.get("last")
        return cls(
            number=int(value["number"]),
            subtask=int(value["subtask"]),
            by=tuple(str(name) for name in value.get("by", ())),
            removed=bool(value.get("removed", False)),
            time=None if time is None else str(time),
            after=None if after is None else int(after),
            last=None if last is None else int(last),
        )


@dataclass(frozen=True, slots=True)
class StateFile:
    """One Parquet file of one subtask."""

    path: str
    """Relative to the folder of the snapshot; of a layer it may begin with ../shared/."""
    rows: int
    size_bytes: int
    sha256: str
    key_groups: KeyGroupRange
    layer: Layer | None = None
    """None for a table that is whole."""

    @property
    def stored(self) -> Stored:
        """The file as it was written."""
        return Stored(self.size_bytes, self.sha256)

    @property
    def is_removed(self) -> bool:
        """Whether it has no rows of the state, only names what is gone."""
        return self.layer is not None and self.layer.removed

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        return {
            "path": self.path,
            "rows": self.rows,
            "size_bytes": self.size_bytes,
            "sha256": self.sha256,
            "key_groups": [self.key_groups.lo, self.key_groups.hi],
            **({} if self.layer is None else {"layer": self.layer.to_json()}),
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> StateFile:
        """Read what `to_json` gave."""
        lo, hi = value["key_groups"]
        layer = value.get("layer")
        return cls(
            path=str(value["path"]),
            rows=int(value["rows"]),
            size_bytes=int(value["size_bytes"]),
            sha256=str(value["sha256"]),
            key_groups=_key_groups(int(lo), int(hi)),
            layer=None if layer is None else Layer.from_json(layer),
        )


def _key_groups(lo: int, hi: int) -> KeyGroupRange:
    if not 0 <= lo < hi:
        msg = f"key groups {lo} to {hi} are no range"
        raise ValueError(msg)
    return KeyGroupRange(lo, hi)
