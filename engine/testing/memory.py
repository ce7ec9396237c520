"""Sources, sinks and storage in memory, for tests: fast, deterministic, and they survive a "crash".

    MemorySource      rows per split; row i can be read from `every` * i µs on
    OutputTables      named tables with two-phase sinks; what is committed outlives the attempts
    MemoryStorage     snapshot folders, with failures on demand

Guarantee  exactly once: the source is replayable, and a commit is idempotent.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from weakref import WeakValueDictionary

import polars as pl

from engine.checkpoint.storage.folder import Folder, Stored, Write, checked, placed, taken
from engine.connectors.contract import (
    Json,
    Polled,
    Sink,
    SinkContext,
    SinkWriter,
    Source,
    SplitReader,
)
from engine.elements import Micros
from engine.errors import InternalError, StorageError


class MemorySource(Source):
    """Reads frames, one per split."""

    def __init__(
        self, splits: Mapping[str, pl.DataFrame], *, every: int = 0, bounded: bool = True
    ) -> None:
        self._splits = dict(splits)
        self._every = every
        self.bounded = bounded

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The schema of the first split: all have the same."""
        return next(iter(self._splits.values())).schema

    def splits(self) -> Sequence[str]:
        """Names of the frames."""
        return list(self._splits)

    def open(self, split: str, position: Json | None) -> SplitReader:
        """Read on from a row index."""
        at = position if isinstance(position, int) else 0
        return _MemoryReader(self._splits[split], at, self._every, self.bounded)

    def missing(self, split: str, position: Json | None) -> str:
        """Rows of a split that was taken away."""
        return "" if split in self._splits else "all of it: there is no such frame"


class _MemoryReader(SplitReader):
    def __init__(self, frame: pl.DataFrame, at: int, every: int, bounded: bool) -> None:
        self._frame = frame
        self._at = at
        self._every = every
        self._bounded = bounded

    def poll(self, max_rows: int, now: Micros) -> Polled:
        readable = self._frame.height if not self._every else now // self._every + 1
        end = min(self._at + max_rows, readable, self._frame.height)
        rows = self._frame.slice(self._at, max(0, end - self._at))
        self._at += rows.height
        left = min(readable, self._frame.height) - self._at
        finished = self._bounded and self._at == self._frame.height
        waits = left == 0 and self._at < self._frame.height
        retry_at = Micros(self._at * self._every) if waits else None
        return Polled(rows if rows.height else None, retry_at, finished, left)

    @property
    def position(self) -> Json:
        return self._at


class OutputTables:
    """What the sinks of a job have made visible. Pickles by reference, so attempts share it."""

    def __init__(self) -> None:
        self.committed: dict[str, list[pl.DataFrame]] = {}
        """Rows by committable."""
        self.staged: dict[str, list[pl.DataFrame]] = {}
        _TABLES[id(self)] = self

    def __reduce__(self) -> tuple[Callable[[int], OutputTables], tuple[int]]:
        return _known_tables, (id(self),)

    def sink(self, name: str) -> Sink:
        """A sink into the table of this name."""
        return _TableSink(self, name)

    def table(self, name: str) -> pl.DataFrame:
        """The visible rows of a table, sorted, so that two histories can be compared."""
        frames = [
            frame
            for committable, frames in sorted(self.committed.items())
            if committable.startswith(f"{name}/")
            for frame in frames
        ]
        if not frames:
            return pl.DataFrame()
        # Row watermarks are there only when some row is behind.
        rows = pl.concat(frames, how="diagonal")
        return rows.sort(rows.columns, nulls_last=True)

    def commit(self, committable: str) -> None:
        """Make staged rows visible; nothing to do if they are."""
        if committable in self.committed:
            return
        if committable not in self.staged:
            msg = f"staged rows {committable!r} are lost: neither staged nor committed"
            raise InternalError(msg)
        self.committed[committable] = self.staged.pop(committable)

    def drop(self, name: str) -> None:
        """Drop what a table has staged and nobody will commit."""
        for committable in [key for key in self.staged if key.startswith(f"{name}/")]:
            del self.staged[committable]


_TABLES: WeakValueDictionary[int, OutputTables] = WeakValueDictionary()


def _known_tables(id_: int) -> OutputTables:
    return _TABLES[id_]


class _TableSink(Sink):
    def __init__(self, tables: OutputTables, name: str) -> None:
        self._tables = tables
        self._name = name

    def open(self, context: SinkContext) -> SinkWriter:
        return _TableWriter(self._tables, self._name, context)

    def shadow(self, name: str) -> Sink:
        return _TableSink(self._tables, f"{self._name}@{name}")


class _TableWriter(SinkWriter):
    def __init__(self, tables: OutputTables, name: str, context: SinkContext) -> None:
        self._tables = tables
        self._name = name
        self._prefix = f"{name}/{context.attempt_id}-{context.subtask}"
        self._frames: list[pl.DataFrame] = []

    def write(self, frame: pl.DataFrame) -> None:
        self._frames.append(frame)

    def prepare(self, checkpoint_id: int) -> Json | None:
        if not self._frames:
            return None
        committable = f"{self._prefix}-{checkpoint_id}"
        self._tables.staged[committable] = self._frames
        self._frames = []
        return committable

    def commit(self, committable: Json) -> None:
        self._tables.commit(str(committable))

    def recover(self, committables: Sequence[Json]) -> None:
        super().recover(committables)
        self._tables.drop(self._name)


class MemoryStorage:
    """Snapshot folders by URL. `before_write` gets the address of every file, and may raise."""

    def __init__(self, before_write: Callable[[str], None] = lambda _: None) -> None:
        self.files: dict[str, bytes] = {}
        """By address."""
        self._before_write = before_write

    def open(self, url: str) -> Folder:
        """The folder at a URL."""
        return _MemoryFolder(self, url)

    def write(self, address: str, content: bytes) -> None:
        """Keep a file. Raises StorageError."""
        self._before_write(address)
        self.files[address] = content


class _MemoryFolder(Folder):
    def __init__(self, storage: MemoryStorage, url: str) -> None:
        self._storage = storage
        self.url = url

    def write(self, name: str, write: Write, *, create: bool = False) -> Stored:
        if create and self.read(name) is not None:
            raise StorageError(taken(name, self.url))
        buffer = io.BytesIO()
        write(buffer)
        content = buffer.getvalue()
        self._storage.write(self._at(name), content)
        return Stored(len(content), hashlib.sha256(content).hexdigest())

    def read(self, name: str) -> bytes | None:
        return self._storage.files.get(self._at(name))

    def exists(self) -> bool:
        return bool(self.files())

    def children(self) -> list[str]:
        return sorted({name.split("/")[0] for name in self.files() if "/" in name})

    def files(self) -> list[str]:
        inside = f"{self.url}/"
        found = (address for address in self._storage.files if address.startswith(inside))
        return sorted(address.removeprefix(inside) for address in found)

    def remove(self, names: Collection[str]) -> None:
        for name in names:
            self._storage.files.pop(self._at(name), None)

    def delete(self) -> None:
        self.remove(self.files())

    def _at(self, name: str) -> str:
        return placed(checked(name, self.url), self.url)
