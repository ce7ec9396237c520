"""Rows to windows, and the order in which rows have their turn.

    (keys, turn, event_time, …) ──▶ one row per window that is not over at the row's turn
                                ──▶ sorted by (keys, window, turn, event_time, all other columns)

Shapes   a row's turn is its event time; or the watermark of its split, if it came behind that.
Order    rows that are equal in all columns cannot be told apart, so the order is total: it depends
         on no batch, channel or parallelism.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from engine.elements import EVENT_TIME, KEY_GROUP, MAX_TIME, MIN_TIME
from engine.state.handles import Key
from engine.windows import Global, Session, SlicedWindows, Times

START = "pane.start"
END = "pane.end"
TURN = "row.turn"
BOUNDS: Mapping[str, pl.DataType] = {START: pl.Int64(), END: pl.Int64()}

AnyWindow = SlicedWindows | Session | Global


@dataclass(frozen=True, slots=True)
class Units:
    """Rows in the order of their turns, and which stretch of them belongs together."""

    rows: pl.DataFrame
    spans: Mapping[Key, tuple[int, int]]
    """By pane, or by key when windows are sessions: the first of its rows and the one after."""


def lifetimes(window: AnyWindow, event_times: Times) -> Times:
    """Where the last windows that rows may be in come to their end."""
    match window:
        case Session():
            return event_times + np.int64(window.gap)
        case Global():
            return np.full_like(event_times, MAX_TIME)
    return window.last_ends(window.slice_ends(event_times))


def in_turns(rows: pl.DataFrame, window: AnyWindow, keys: Sequence[str], allowed: int) -> Units:
    """Put rows into their windows and in order."""
    units = [KEY_GROUP, *keys]
    match window:
        case Session():
            pass
        case Global():
            bounds = (
                pl.lit(MIN_TIME, pl.Int64).alias(START),
                pl.lit(MAX_TIME, pl.Int64).alias(END),
            )
            rows, units = rows.with_columns(*bounds), [*units, START, END]
        case _:
            rows, units = _in_windows(rows, window, allowed), [*units, START, END]
    rows = _ordered(rows, units)
    return Units(rows, _spans(rows.select(units)))


def _in_windows(rows: pl.DataFrame, window: SlicedWindows, allowed: int) -> pl.DataFrame:
    slice_ends = window.slice_ends(rows.get_column(EVENT_TIME).to_numpy())
    first = window.first_ends(slice_ends)
    many = (window.last_ends(slice_ends) - first) // window.step + 1
    if (many > 1).any():
        rows = rows[np.repeat(np.arange(rows.height), many)]
        nth = np.arange(rows.height) - np.repeat(np.cumsum(many) - many, many)
        first = np.repeat(first, many) + nth * window.step
    ends = pl.Series(END, first)
    distinct = pl.DataFrame([ends.unique(), ends.unique().alias(START)])
    starts = pl.Series(START, [window.start(end) for end in distinct.get_column(END)], pl.Int64)
    distinct = distinct.with_columns(starts)
    placed = rows.with_columns(ends).join(distinct, on=END, how="left", maintain_order="left")
    return placed.filter(pl.col(TURN) < pl.col(END) + allowed)


def _ordered(rows: pl.DataFrame, units: Sequence[str]) -> pl.DataFrame:
    if TURN not in rows.columns:
        return rows.sort(units, maintain_order=True)
    order = [*units, TURN, EVENT_TIME]
    ordered = rows.sort(order)
    if _begins(ordered.select(order)).all():
        return ordered
    return rows.sort([*order, *(name for name in rows.columns if name not in order)])


def _begins(rows: pl.DataFrame) -> pl.Series:
    """Whether each row differs from the one before it."""
    before = (pl.col(name).ne_missing(pl.col(name).shift()) for name in rows.columns)
    return rows.select(pl.any_horizontal(before)).to_series()


def _spans(units: pl.DataFrame) -> dict[Key, tuple[int, int]]:
    starts = np.flatnonzero(_begins(units).to_numpy())
    ends = [*starts[1:].tolist(), units.height]
    found = units[starts].rows()
    return {key: span for key, *span in zip(found, starts.tolist(), ends, strict=True)}  # type: ignore[misc]
