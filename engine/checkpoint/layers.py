"""The rows of a state whose files are layers: read without holding the state, newest layer first.

    layer 2   rows ──────────────────────────────▶ all
    layer 1   rows ──not named by 2──────────────▶ …
    layer 0   rows ──not named by 1 or 2─────────▶ …

Shapes   a chain without `by`, of rows that are only ever added, comes oldest first, as it arrived.
Cost     in memory are the keys that layers name, of so many key groups at a time that they are some
         hundred thousand, and one part of a table.
Errors   SnapshotCorrupt for a file that is missing, altered or no Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby, pairwise

import polars as pl
import pyarrow.parquet as pq
from pyarrow.lib import ArrowException

from engine.checkpoint.files import Layer, StateFile
from engine.checkpoint.folder import Folder, open_verified
from engine.checkpoint.tables import opened_parquet, read_parts
from engine.errors import SnapshotCorrupt
from engine.keygroups import KeyGroupRange

KEYS_AT_ONCE = 2**19
"""So many keys of layers are in memory at once, roughly: some ten megabytes."""

By = tuple[str, ...]


def chains(files: Sequence[StateFile]) -> list[list[StateFile]]:
    """The files of a state, those together that have to be read together: oldest first."""
    found: dict[object, list[StateFile]] = {}
    for file in files:
        found.setdefault(file.path if file.layer is None else file.layer.subtask, []).append(file)
    return [sorted(chain, key=lambda file: layer_of(file).number) for chain in found.values()]


def layer_of(file: StateFile) -> Layer:
    """The layer of a file; a table that is whole is a chain of one."""
    return Layer(0, 0) if file.layer is None else file.layer


def is_alive(layer: Layer) -> pl.Expr | None:
    """Which rows of a file have not left the state by their time; None: all."""
    if layer.time is None or layer.after is None:
        return None
    return pl.col(layer.time) > layer.after


def chain_parts(
    chain: Sequence[StateFile], folder: Folder, ours: KeyGroupRange | None
) -> Iterator[pl.DataFrame]:
    """The rows of a chain whose key groups are ours, part by part; None: all."""
    with ExitStack() as stack:
        reader = _Reader(folder, stack)
        for span in _spans(chain, ours):
            if any(layer_of(file).by for file in chain):
                yield from _newest_first(chain, reader, span)
            else:
                for file in chain:
                    yield from reader.rows(file, span)


def scan_chain(chain: Sequence[StateFile], folder: Folder) -> Iterator[pl.LazyFrame]:
    """The rows of a chain as queries, one per file."""
    scans = {file.path: pl.scan_parquet(folder.scannable(file.path)) for file in chain}
    named: dict[By, list[pl.LazyFrame]] = {}
    for _, files in groupby(reversed(chain), key=lambda file: layer_of(file).number):
        layer = list(files)
        for file in layer:
            rows, alive = scans[file.path], is_alive(layer_of(file))
            if file.is_removed:
                continue
            if alive is not None:
                rows = rows.filter(alive)
            for by, keys in named.items():
                rows = rows.join(pl.concat(keys), on=list(by), how="anti", nulls_equal=True)
            yield rows
        for file in layer:
            if by := layer_of(file).by:
                named.setdefault(by, []).append(scans[file.path].select(by))


def _spans(
    chain: Sequence[StateFile], ours: KeyGroupRange | None
) -> Sequence[KeyGroupRange | None]:
    """Key groups to read at once: so few that the keys of layers fit into memory."""
    named = sum(file.rows for file in chain if layer_of(file).by)
    if named <= KEYS_AT_ONCE or ours is None:
        return [ours]
    stored = chain[0].key_groups
    lo, hi = max(ours.lo, stored.lo), min(ours.hi, stored.hi)
    parts = min(hi - lo, -(-named // KEYS_AT_ONCE))
    cuts = [lo + (hi - lo) * part // parts for part in range(parts + 1)]
    return [KeyGroupRange(*span) for span in pairwise(cuts)]


def _newest_first(
    chain: Sequence[StateFile], reader: _Reader, span: KeyGroupRange | None
) -> Iterator[pl.DataFrame]:
    named: dict[By, pl.DataFrame] = {}
    for _, files in groupby(reversed(chain), key=lambda file: layer_of(file).number):
        names: list[tuple[By, pl.DataFrame]] = []
        for file in files:
            by = layer_of(file).by
            for part in reader.rows(file, span):
                if by:
                    names.append((by, part.select(by)))
                if not file.is_removed:
                    yield _standing(part, named)
        # Only now: the rows of one layer do not take each other's place.
        for by, keys in names:
            named[by] = pl.concat([named[by], keys]) if by in named else keys


def _standing(rows: pl.DataFrame, named: Mapping[By, pl.DataFrame]) -> pl.DataFrame:
    """The rows whose place nothing has taken."""
    for by, keys in named.items():
        rows = rows.join(keys, on=list(by), how="anti", nulls_equal=True, maintain_order="left")
    return rows


@dataclass(slots=True)
class _Reader:
    """Files of one chain, each verified when it is first read, and open until all are read."""

    folder: Folder
    stack: ExitStack
    opened: dict[str, pq.ParquetFile] = field(default_factory=dict)

    def rows(self, file: StateFile, span: KeyGroupRange | None) -> Iterator[pl.DataFrame]:
        """The rows of a file in some key groups, without those that time has ended."""
        alive = is_alive(layer_of(file))
        try:
            for part in read_parts(self._open(file), span):
                yield part if alive is None else part.filter(alive)
        except ArrowException as error:
            msg = (
                f"snapshot file {file.path} in {self.folder.url} is not a Parquet file that "
                f"can be read: {error}; choose another snapshot"
            )
            raise SnapshotCorrupt(msg) from error

    def _open(self, file: StateFile) -> pq.ParquetFile:
        if file.path not in self.opened:
            content = open_verified(self.folder, file.path, file.stored)
            self.stack.enter_context(content)
            self.opened[file.path] = opened_parquet(content)
        return self.opened[file.path]
