"""Late rows: which watermark a row is judged by, which are behind it, and where those go.

    input 0 ──late──▶ side output "late"
    input 1 ──late──▶ side output "late_right"

Late     a row is judged by its own split's watermark, and by the operator's, which differs only
         after an input was idle.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from engine.elements import EVENT_TIME, KEY_GROUP, MIN_TIME, ROW_WATERMARK, Micros
from engine.frames import kept, present, without
from engine.operators.contract import Context
from engine.windows import Times

LATE = "late"
"""The tag of rows that came too late."""

LATE_TAGS = (LATE, "late_right")
"""Side outputs of rows that came too late, per input."""

LATE_ROWS = "numLateRecordsDropped"
"""The counter of late rows: dropped, unless a side output takes them."""


def row_marks(frame: pl.DataFrame, watermark: Micros) -> Times | None:
    """The watermark that each row is judged by; None when it is the operator's own for all."""
    if ROW_WATERMARK not in frame.columns:
        return None
    # Null where a row is not behind its split at all. The operator's own watermark is above that of
    # a row only after its split was idle.
    own = frame.get_column(ROW_WATERMARK).to_arrow().fill_null(MIN_TIME)
    marks: Times = np.maximum(own.to_numpy(zero_copy_only=False), np.int64(watermark))
    return marks


def behind(frame: pl.DataFrame, watermark: Micros) -> pl.Series | None:
    """Which rows are behind their watermark; None when all are in time."""
    late = None
    if ROW_WATERMARK in frame.columns:
        late = pl.Series(present(frame.get_column(ROW_WATERMARK)))
    times = frame.get_column(EVENT_TIME)
    if int(times.to_numpy().min()) < watermark:
        late = times < watermark if late is None else late | (times < watermark)
    return late if late is not None and late.any() else None


def set_aside(frame: pl.DataFrame, late: pl.Series | None, port: int, ctx: Context) -> pl.DataFrame:
    """Send late rows to the side output of their input; give the others."""
    if late is None:
        return frame
    rows = kept(frame, late)
    ctx.emit(without(rows, (KEY_GROUP,)), LATE_TAGS[port])
    ctx.count(LATE_ROWS, rows.height)
    return kept(frame, ~late)
