"""What windows hold: rows, as frames; or an accumulator that takes each row at its turn.

    add ──▶ parts of a pane ──fire──▶ frames, past the evictor
            parts of a pane ──finish──▶ state: appended, or put in place of what was there

Shapes   a pane is a window of one key: (key group, keys…, start, end). A part is what state holds
         of a pane, a stretch of the rows of this call, or a frame that an evictor left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import polars as pl

from engine.errors import FunctionError, UserError
from engine.evictors import Evictor
from engine.operators.contract import Context
from engine.operators.expressions import raised
from engine.operators.records.rows import columns_of, rows_of
from engine.operators.windows.rows.assign import BOUNDS
from engine.operators.windows.rows.folds import Fold, Folding, times_of
from engine.state.contract import ROW_INDEX, StateDescriptor, StateKind
from engine.state.handles import DELETED, FramesHandle, Key, ValueHandle
from engine.state.values import check_value_type

Schema = Mapping[str, pl.DataType]

_LATEST = "row.latest"


class Contents(ABC):
    """Settings of what windows hold; `turn` gives the thing itself."""

    state: StateDescriptor

    @abstractmethod
    def turn(self, rows: pl.DataFrame, panes: Iterable[Key], ctx: Context) -> ContentsTurn:
        """The contents during one call. `panes`: those of which state may hold something."""


class ContentsTurn(ABC):
    """What windows hold during one call of the runtime."""

    @abstractmethod
    def add(self, pane: Key, lo: int, hi: int) -> None:
        """Put a stretch of the rows of this call into a pane."""

    @abstractmethod
    def fire(self, pane: Key) -> Any:
        """What a result is made of; None when the pane is empty."""

    @abstractmethod
    def purge(self, pane: Key) -> None:
        """Empty a pane."""

    @abstractmethod
    def merge(self, pane: Key, parts: Sequence[Key]) -> None:
        """Put what some panes hold into another, in this order."""

    @abstractmethod
    def finish(self) -> None:
        """Write the changes to the state."""


class RowContents(Contents):
    """Windows hold rows."""

    def __init__(self, keys: Schema, schema: Schema, evictor: Evictor | None = None) -> None:
        self.keys = dict(keys)
        self.schema = dict(schema)
        self.evictor = evictor
        columns = {name: dtype for name, dtype in schema.items() if name not in keys}
        self.state = StateDescriptor(
            "window.rows", StateKind.FRAMES, {**keys, **BOUNDS}, {ROW_INDEX: pl.Int64(), **columns}
        )

    def turn(self, rows: pl.DataFrame, panes: Iterable[Key], ctx: Context) -> ContentsTurn:
        """The rows during one call."""
        return _RowsTurn(self, rows, cast("FramesHandle", ctx.state(self.state)))

    def whole(self, frames: Sequence[pl.DataFrame], pane: Key) -> pl.DataFrame:
        """The rows of a pane with all columns of the stream, in one piece."""
        rows = pl.concat(frames).rechunk()
        keys = {
            name: pl.Series(name, [value], dtype=dtype).new_from_index(0, rows.height)
            for (name, dtype), value in zip(self.keys.items(), pane[1:], strict=False)
        }
        return pl.DataFrame(
            [keys[name] if name in keys else rows.get_column(name) for name in self.schema]
        )


class _Held:
    """What state holds of a pane."""

    def __init__(self, pane: Key) -> None:
        self.pane = pane


_Part = _Held | pl.DataFrame | tuple[int, int]


class _RowsTurn(ContentsTurn):
    def __init__(self, setup: RowContents, rows: pl.DataFrame, handle: FramesHandle) -> None:
        self._setup = setup
        self._columns = [name for name in setup.state.values if name != ROW_INDEX]
        self._rows = rows.select(self._columns)
        self._handle = handle
        self._parts: dict[Key, list[_Part]] = {}

    def _of(self, pane: Key) -> list[_Part]:
        parts = self._parts.get(pane)
        if parts is None:
            parts = self._parts[pane] = [_Held(pane)]
        return parts

    def add(self, pane: Key, lo: int, hi: int) -> None:
        parts = self._of(pane)
        last = parts[-1] if parts else None
        if isinstance(last, tuple) and last[1] == lo:
            parts[-1] = last[0], hi
        else:
            parts.append((lo, hi))

    def fire(self, pane: Key) -> list[pl.DataFrame] | None:
        frames = self._frames(self._of(pane))
        if frames and self._setup.evictor is not None:
            frames = self._evicted(pane, frames, self._setup.evictor)
        return frames or None

    def _evicted(
        self, pane: Key, frames: Sequence[pl.DataFrame], evictor: Evictor
    ) -> list[pl.DataFrame]:
        whole = self._setup.whole(frames, pane)
        kept = self._kept(evictor, whole, pane, after=False)
        left = self._kept(evictor, kept, pane, after=True) if kept.height else kept
        if left.height < whole.height:
            self._parts[pane] = [left.select(self._columns)]
        return [kept.select(self._columns)] if kept.height else []

    def _kept(
        self, evictor: Evictor, rows: pl.DataFrame, pane: Key, *, after: bool
    ) -> pl.DataFrame:
        step = f"evictor {str(evictor)!r}"
        try:
            kept = evictor.evict_after(rows) if after else evictor.evict_before(rows)
        except UserError:
            raise
        except Exception as error:
            msg = f"{step} {raised(error)}: rows of key {pane[1:-2]}; fix the evictor"
            raise FunctionError(msg) from error
        if not isinstance(kept, pl.DataFrame) or kept.schema != rows.schema:
            given = dict(kept.schema) if isinstance(kept, pl.DataFrame) else kept
            msg = f"{step} changed the columns of rows: got {given!r}; give some of the rows"
            raise FunctionError(msg)
        return kept

    def purge(self, pane: Key) -> None:
        self._parts[pane] = []

    def merge(self, pane: Key, parts: Sequence[Key]) -> None:
        gathered = [part for each in parts for part in self._of(each)]
        for each in parts:
            self._parts[each] = []
        self._parts[pane] = gathered

    def finish(self) -> None:
        """Removed first: a pane may have taken over what state holds of another."""
        added: dict[Key, list[pl.DataFrame]] = {}
        removed: list[Key] = []
        for pane, parts in self._parts.items():
            keeps = bool(parts) and isinstance(parts[0], _Held) and parts[0].pane == pane
            added[pane] = self._frames(parts[1:] if keeps else parts)
            if not keeps:
                removed.append(pane)
        self._handle.remove_many(removed)
        self._handle.append_many(added)

    def _frames(self, parts: Sequence[_Part]) -> list[pl.DataFrame]:
        frames: list[pl.DataFrame] = []
        for part in parts:
            match part:
                case _Held():
                    frames += self._handle.get_many([part.pane]).get(part.pane, ())
                case pl.DataFrame():
                    frames.append(part)
                case lo, hi:
                    frames.append(self._rows.slice(lo, hi - lo))
        return frames


class FoldContents(Contents):
    """Windows hold an accumulator, and the latest event time of what it is made of."""

    def __init__(self, keys: Schema, fold: Fold) -> None:
        self.fold = fold
        columns = {_LATEST: pl.Int64(), **fold.columns}
        for dtype in fold.columns.values():
            check_value_type(dtype)
        self.state = StateDescriptor("accumulators", StateKind.VALUE, {**keys, **BOUNDS}, columns)

    def turn(self, rows: pl.DataFrame, panes: Iterable[Key], ctx: Context) -> ContentsTurn:
        """The accumulators during one call."""
        handle = cast("ValueHandle", ctx.state(self.state))
        return _FoldsTurn(self.fold, rows, handle, panes)


class _FoldsTurn(ContentsTurn):
    def __init__(
        self, fold: Fold, rows: pl.DataFrame, handle: ValueHandle, panes: Iterable[Key]
    ) -> None:
        self._fold = fold
        self._handle = handle
        # Rows one by one: that is what the author's function takes.
        self._rows = list(rows_of(columns_of(fold.seen(rows))))
        self._times = times_of(rows)
        self._held: dict[Key, Folding | None] = {
            pane: (item[0], dict(zip(fold.columns, item[1:], strict=True)))
            for pane, item in handle.get_many(panes).items()
        }
        self._changed: set[Key] = set()

    def add(self, pane: Key, lo: int, hi: int) -> None:
        held = self._held.get(pane)
        for at in range(lo, hi):
            held = self._fold.added(held, self._rows[at], self._times[at])
        self._put(pane, held)

    def fire(self, pane: Key) -> Folding | None:
        return self._held.get(pane)

    def purge(self, pane: Key) -> None:
        self._put(pane, None)

    def merge(self, pane: Key, parts: Sequence[Key]) -> None:
        held = [each for part in parts if (each := self._held.get(part)) is not None]
        for part in parts:
            self._put(part, None)
        self._put(pane, self._fold.merged(held) if held else None)

    def _put(self, pane: Key, held: Folding | None) -> None:
        self._held[pane] = held
        self._changed.add(pane)

    def finish(self) -> None:
        self._handle.put_many({pane: self._item(pane) for pane in self._changed})

    def _item(self, pane: Key) -> Any:
        held = self._held[pane]
        return DELETED if held is None else (held[0], *held[1].values())
