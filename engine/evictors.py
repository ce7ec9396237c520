"""Evictors: which rows a window forgets when it gives a result. `from engine import evictors`.

    trigger fires ──▶ evict_before ──▶ the result is made ──▶ evict_after

    count(100)             all but the last hundred rows
    time("5m")             all but those of the last five minutes before the newest row
    delta(3.0, "price")    those whose price is 3 or more away from that of the last row

Order    a window keeps its rows in the order of their turns: by event time, but that rows behind
         the watermark of their split come where the watermark was. Later results do not see rows
         that were forgotten.
Source   Flink's evictors.
"""

from __future__ import annotations

import polars as pl

from engine.aggregates.declared import Of
from engine.durations import Duration, format_duration, positive_duration
from engine.elements import EVENT_TIME
from engine.errors import GraphError


class Evictor:
    """Forgets rows of a window that fires; both methods keep all unless they are overridden.

    >>> class Dearest(Evictor):
    ...     def evict_before(self, rows):
    ...         return rows.filter(pl.col("price") == pl.col("price").max())
    >>> Dearest().evict_before(pl.DataFrame({"price": [1, 3, 2]})).rows()
    [(3,)]
    """

    def evict_before(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows to keep, before the result is made: some of `rows`, in the same order."""
        return rows

    def evict_after(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows to keep, after the result was made of `rows`."""
        return rows

    def __str__(self) -> str:
        return type(self).__name__


class _Keeping(Evictor):
    """Keeps what an expression is true of."""

    def __init__(self, text: str, keep: pl.Expr, *, after: bool) -> None:
        self.keep = keep
        self.after = after
        self._text = text

    def evict_before(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows to keep, unless they are to be evicted afterwards."""
        return rows if self.after else rows.filter(self.keep)

    def evict_after(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows to keep, if they are to be evicted afterwards."""
        return rows.filter(self.keep) if self.after else rows

    def __str__(self) -> str:
        return self._text


def count(size: int, *, after: bool = False) -> Evictor:
    """Keep the last `size` rows. `after`: evict only after the result is made.

    >>> count(2).evict_before(pl.DataFrame({"n": [1, 2, 3]})).rows()
    [(2,), (3,)]
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        msg = f"count evictor needs a positive number of rows: got {size!r}; pass e.g. count(100)"
        raise GraphError(msg)
    number = pl.int_range(pl.len())
    return _Keeping(f"last {size} rows", number >= pl.len().cast(pl.Int64) - size, after=after)


def time(size: Duration, *, after: bool = False) -> Evictor:
    """Keep rows whose event time is less than `size` before that of the newest row.

    >>> time(2).evict_before(pl.DataFrame({"event_time": [1, 2, 3]})).rows()
    [(2,), (3,)]
    """
    micros = positive_duration(size, "size of a time evictor", "time('5m')")
    newest = pl.col(EVENT_TIME).max()
    text = f"last {format_duration(micros)}"
    return _Keeping(text, pl.col(EVENT_TIME) > newest - micros, after=after)


def delta(threshold: float, of: Of, *, after: bool = False) -> Evictor:
    """Keep rows in which a number differs by less than `threshold` from that of the last row.

    `of`: a column or an expression. A row without a number is not kept.

    >>> delta(3, "n").evict_before(pl.DataFrame({"n": [1, 5, 9, 6]})).rows()
    [(5,), (6,)]
    """
    if not threshold > 0:
        msg = f"threshold of a delta evictor must be positive: got {threshold!r}; pass e.g. 1.5"
        raise GraphError(msg)
    value = (pl.col(of) if isinstance(of, str) else of).cast(pl.Float64)
    near = (value - value.last()).abs() < threshold
    return _Keeping(f"within {threshold} of the last {of}", near, after=after)
