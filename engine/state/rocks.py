"""The RocksDB backend: keyed values on disk, so that state may be larger than memory.

    key   = number of the state, key group, key columns       (bytes, in order of key group)
    value = the key as Python objects, and what it has        (pickled)

    get_many ──▶ one multi-get, keys sorted        put_many ──▶ one WriteBatch, without a log
    freeze   ──▶ a Checkpoint of RocksDB: hard links, read and removed by the snapshot's writer

Guarantee  canonical tables are those of the memory backend: a job may change its backend at any
           restore. The folder holds nothing that must survive: it dies with its process.
Cost     a snapshot is full. Freezing flushes what was written since the last one: some 40 ms. A
         list or map is one value. Timers, and the rows and runs of windows, stay in memory.
Source   not `Rdict.snapshot()`: its iterators show what was written later (rocksdict 0.3.29).
"""

from __future__ import annotations

import marshal
import pickle
import shutil
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

import polars as pl
from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Checkpoint,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from engine.keygroups import KeyGroupRange
from engine.state.contract import FrozenState, StateBackend, StateDescriptor, StateKind
from engine.state.handles import DELETED, Key, ValueHandle
from engine.state.memory import MemoryBackend, owned_rows
from engine.state.scratch import scratch_folder
from engine.state.tables import continued, items_of, table_of

_ON_DISK = (StateKind.VALUE, StateKind.LIST, StateKind.MAP)
_LOAD_ROWS = 10_000
_BLOOM_BITS = 10
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  of times without a zone
_MICROSECOND = timedelta(microseconds=1)
# Version 2 writes equal values as equal bytes; later ones depend on who else refers to them.
_MARSHAL = 2


class RocksValues(ValueHandle):
    """What each key has in one state."""

    def __init__(self, descriptor: StateDescriptor, number: int, database: Rdict) -> None:
        self.descriptor = descriptor
        self.prefix = number.to_bytes(2, "big")
        self._database = database
        self._temporal = any(dtype.is_temporal() for dtype in descriptor.keys.values())

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """One multi-get: sorted keys are read twice as fast."""
        wanted = sorted({self._address(key) for key in keys})
        if not wanted:
            return {}
        found: Any = self._database.get(wanted)  # type: ignore[arg-type]  # its stub is too narrow
        return dict(pickle.loads(value) for value in found if value is not None)  # noqa: S301 ours

    def put_many(self, values: Mapping[Key, Any]) -> None:
        """One WriteBatch."""
        if not values:
            return
        batch = WriteBatch(raw_mode=True)
        for key, value in values.items():
            if value is DELETED:
                batch.delete(self._address(key))
            else:
                content = pickle.dumps((key, value), protocol=pickle.HIGHEST_PROTOCOL)
                batch.put(self._address(key), content)
        self._database.write(batch, _unlogged())

    def items(self) -> Iterator[tuple[Key, Any]]:
        """Everything, by key group."""
        return _items(self._database, self.prefix)

    def load(self, table: pl.DataFrame) -> None:
        """Add rows of a canonical table."""
        items = items_of(self.descriptor, table)
        begins = True
        while chunk := dict(islice(items, _LOAD_ROWS)):
            if begins and self.descriptor.kind is not StateKind.VALUE:
                # A part of a table may begin within a key.
                key = next(iter(chunk))
                chunk[key] = continued(self.get_many([key]).get(key), chunk[key])
            begins = False
            self.put_many(chunk)

    def _address(self, key: Key) -> bytes:
        group, *rest = key
        columns = tuple(map(_plain, rest)) if self._temporal else tuple(rest)
        address: bytes = self.prefix + group.to_bytes(2, "big") + marshal.dumps(columns, _MARSHAL)
        return address


class FrozenValues(FrozenState):
    """One state as it was at a barrier."""

    def __init__(self, descriptor: StateDescriptor, prefix: bytes, folder: _Frozen) -> None:
        self.descriptor = descriptor
        self._prefix = prefix
        self._folder = folder

    def table(self) -> pl.DataFrame:
        """The canonical table, read from the checkpoint."""
        return table_of(self.descriptor, _items(self._folder.reader(), self._prefix))


class _Frozen:
    """A checkpoint of RocksDB, removed when nobody needs it any more."""

    def __init__(self, database: Rdict, path: Path) -> None:
        Checkpoint(database).create_checkpoint(str(path))
        self._path = path
        self._reader: Rdict | None = None
        self._opening = Lock()
        weakref.finalize(self, _remove, path)

    def reader(self) -> Rdict:
        """The checkpoint, opened once for all of its states. Any thread."""
        with self._opening:
            if self._reader is None:
                self._reader = Rdict(
                    str(self._path), _options(), access_type=AccessType.read_only()
                )
            return self._reader


class RocksBackend(StateBackend):
    """All states of one operator subtask: values on disk, the rest in memory."""

    def __init__(self, key_groups: KeyGroupRange, folder: Path | None = None) -> None:
        """`folder`: where its own folder is made; the system's folder for temporary files."""
        self.key_groups = key_groups
        self._parent = folder
        self._database: Rdict | None = None
        self._path = Path()
        self._memory = MemoryBackend(key_groups)
        self._values: dict[str, RocksValues] = {}
        self._frozen = 0

    def state(self, descriptor: StateDescriptor) -> object:
        """The handle of a state."""
        # Also for states on disk: an empty one there, which refuses a second shape.
        in_memory = self._memory.state(descriptor)
        if descriptor.kind not in _ON_DISK:
            return in_memory
        return self._on_disk(descriptor)

    def _on_disk(self, descriptor: StateDescriptor) -> RocksValues:
        known = self._values.get(descriptor.name)
        if known is None:
            known = RocksValues(descriptor, len(self._values), self._open())
            self._values[descriptor.name] = known
        return known

    def _open(self) -> Rdict:
        """The database; made when the first state needs it, since windows need none."""
        if self._database is None:
            self._path = scratch_folder(self._parent)
            self._database = Rdict(str(self._path / "live"), _options())
            # A backend that is dropped without a word leaves nothing behind either.
            self._removal = weakref.finalize(self, _remove, self._path / "live")
        return self._database

    def freeze(self) -> Sequence[FrozenState]:
        """Link the files of the database, and refer to what is in memory."""
        frozen = [
            state for state in self._memory.freeze() if state.descriptor.name not in self._values
        ]
        if self._database is not None:
            self._frozen += 1
            folder = _Frozen(self._database, self._path / str(self._frozen))
            frozen += [
                FrozenValues(handle.descriptor, handle.prefix, folder)
                for handle in self._values.values()
            ]
        return sorted(frozen, key=lambda state: state.descriptor.name)

    def restore(self, descriptor: StateDescriptor, table: pl.DataFrame) -> None:
        """Add the rows of a canonical table whose key groups are ours."""
        if descriptor.kind in _ON_DISK:
            ours = owned_rows(descriptor, table, self.key_groups)
            self._memory.state(descriptor)
            self._on_disk(descriptor).load(ours)
        else:
            self._memory.restore(descriptor, table)

    def close(self) -> None:
        """Remove the database; a snapshot that is being written keeps its own files."""
        if self._database is not None:
            self._database.close()
            self._database = None
            self._removal()


def _remove(path: Path) -> None:
    """Remove a folder, and the one that it lies in if it was the last."""
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.parent.rmdir()


def _items(database: Rdict, prefix: bytes) -> Iterator[tuple[Key, Any]]:
    entries: Iterable[Any] = database.items(from_key=prefix)
    for address, value in entries:
        if not address.startswith(prefix):
            return
        yield pickle.loads(value)  # noqa: S301  we wrote it


def _options() -> Options:
    options = Options(raw_mode=True)
    tables = BlockBasedOptions()
    tables.set_bloom_filter(_BLOOM_BITS, block_based=False)
    options.set_block_based_table_factory(tables)
    # Nobody reads its diary.
    options.set_keep_log_file_num(1)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    return options


def _unlogged() -> WriteOptions:
    """Writes without a log: after a crash state comes from the last snapshot, not from here."""
    options = WriteOptions()
    options.disable_wal = True  # type: ignore[method-assign, assignment]  # its stub is wrong
    return options


def _plain(value: Any) -> Any:
    """A time as something that can be marshalled."""
    match value:
        case datetime(tzinfo=None):
            return (value - _EPOCH) // _MICROSECOND
        case datetime():
            return (value - _EPOCH.replace(tzinfo=UTC)) // _MICROSECOND
        case date():
            return value.toordinal()
        case timedelta():
            return value // _MICROSECOND
        case time():
            return value.isoformat()
    return value
