"""The rows of a state whose files are layers: read without holding the state, oldest layer first.

    layer 0   rows ──not named by 1 or 2─────────▶ …
    layer 1   rows ──not named by 2──────────────▶ …
    layer 2   rows ──────────────────────────────▶ all

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

from engine.checkpoint.format.files import Layer, StateFile
from engine.checkpoint.format.tables import opened_parquet, read_parts
from engine.checkpoint.storage.folder import Folder, open_verified
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


def chain_parts(
    chain: Sequence[StateFile], folder: Folder, ours: KeyGroupRange | None
) -> Iterator[pl.DataFrame]:
    """The rows of a chain whose key groups are ours, part by part; None: all."""
    later = _later(chain)
    with ExitStack() as stack:
        reader = _Reader(folder, stack)
        for span in _spans(chain, ours):
            keys = {file: reader.keys(file, span) for file in chain if layer_of(file).by}
            for file in chain:
                named = {
                    by: pl.concat(keys[each] for each in files).lazy()
                    for by, files in later[layer_of(file).number].items()
                }
                for part in reader.rows(file, span):
                    yield _standing(part.lazy(), named).collect()


def scan_chain(chain: Sequence[StateFile], folder: Folder) -> Iterator[pl.LazyFrame]:
    """The rows of a chain as queries, one per file."""
    later = _later(chain)
    scans = {file: pl.scan_parquet(folder.scannable(file.path)) for file in chain}
    for file in chain:
        layer = layer_of(file)
        named = {
            by: pl.concat(scans[each].select(by) for each in files)
            for by, files in later[layer.number].items()
        }
        if not file.is_removed:
            yield _standing(_alive(scans[file], layer), named)


def _later(chain: Sequence[StateFile]) -> Mapping[int, Mapping[By, Sequence[StateFile]]]:
    """By the number of a layer: the files of later ones that take the place of its rows."""
    found: dict[int, Mapping[By, Sequence[StateFile]]] = {}
    so_far: dict[By, tuple[StateFile, ...]] = {}
    for number, files in groupby(reversed(chain), key=lambda file: layer_of(file).number):
        # Without its own: the rows of one layer do not take each other's place.
        found[number] = dict(so_far)
        for file in files:
            if by := layer_of(file).by:
                so_far[by] = (*so_far.get(by, ()), file)
    return found


def _standing(rows: pl.LazyFrame, named: Mapping[By, pl.LazyFrame]) -> pl.LazyFrame:
    """The rows whose place nothing has taken."""
    for by, keys in named.items():
        rows = rows.join(keys, on=list(by), how="anti", nulls_equal=True, maintain_order="left")
    return rows


def _alive(rows: pl.LazyFrame, layer: Layer) -> pl.LazyFrame:
    """The rows that have not left the state by their time."""
    if layer.time is None or layer.after is None:
        return rows
    return rows.filter(pl.col(layer.time) > layer.after)


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


@dataclass(slots=True)
class _Reader:
    """Files of one chain, each verified when it is first read, and open until all are read."""

    folder: Folder
    stack: ExitStack
    opened: dict[str, pq.ParquetFile] = field(default_factory=dict)

    def rows(self, file: StateFile, span: KeyGroupRange | None) -> Iterator[pl.DataFrame]:
        """The rows of the state in a file, in some key groups, that time has not ended."""
        if file.is_removed:
            return
        layer = layer_of(file)
        for part in self._parts(file, span):
            yield _alive(part.lazy(), layer).collect()

    def keys(self, file: StateFile, span: KeyGroupRange | None) -> pl.DataFrame:
        """What a file takes the place of, in some key groups."""
        by = layer_of(file).by
        return pl.concat(part.select(by) for part in self._parts(file, span, by))

    def _parts(
        self, file: StateFile, span: KeyGroupRange | None, columns: By | None = None
    ) -> Iterator[pl.DataFrame]:
        try:
            yield from read_parts(self._open(file), span, columns)
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
