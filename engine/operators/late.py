"""Late rows of operators that wait for event time: which they are, and where they go.

    input 0 ──behind──▶ side output "late"
    input 1 ──behind──▶ side output "late_right"

Late     a row is behind when it came after its own split's watermark, or after the operator's,
         which differs only after an input was idle.
"""

from __future__ import annotations

import polars as pl

from engine.elements import EVENT_TIME, KEY_GROUP, ROW_WATERMARK, Micros
from engine.operators.contract import Context
from engine.operators.windows.partial_aggregate import LATE, LATE_ROWS

LATE_TAGS = (LATE, "late_right")
"""Side outputs of rows that came too late, per input."""


def behind(frame: pl.DataFrame, watermark: Micros) -> pl.Series | None:
    """Which rows are behind their watermark; None when all are in time."""
    late = None
    if ROW_WATERMARK in frame.columns:
        late = frame.get_column(ROW_WATERMARK).is_not_null()
    times = frame.get_column(EVENT_TIME)
    if int(times.to_numpy().min()) < watermark:
        late = times < watermark if late is None else late | (times < watermark)
    return late if late is not None and late.any() else None


def set_aside(frame: pl.DataFrame, late: pl.Series | None, port: int, ctx: Context) -> pl.DataFrame:
    """Send late rows to the side output of their side; give the others."""
    if late is None:
        return frame
    rows = frame.filter(late)
    ctx.emit(rows.drop(KEY_GROUP), LATE_TAGS[port])
    ctx.count(LATE_ROWS, rows.height)
    return frame.filter(~late)
