"""Conformance of watermark generators: how rows are cut into batches must change nothing.

    check_watermark_generator(custom_watermarks(EndOfHour(), column="time"), rows)

Raises AssertionError with one sentence.
"""

from __future__ import annotations

import json

import cloudpickle
import polars as pl

from engine.elements import ROW_WATERMARK
from engine.watermarks import SplitWatermarks, WatermarkStrategy

SIZES = (1, 2, 3, 7)
"""Rows of a batch. Small: what is wrong with any cut is wrong with one between two rows."""


def check_watermark_generator(strategy: WatermarkStrategy, rows: pl.DataFrame) -> None:
    """Stamp the rows of one split at once, in small batches, and with a restore between any two."""
    raw: bytes = cloudpickle.dumps(strategy)  # type: ignore[no-untyped-call]
    shipped: WatermarkStrategy = cloudpickle.loads(raw)
    whole = _stamped(shipped, rows, rows.height, restores=False)
    for size in SIZES:
        cut = f"in batches of {size}"
        assert _stamped(shipped, rows, size, restores=False) == whole, f"rows differ {cut}"
        again = _stamped(shipped, rows, size, restores=True)
        assert again == whole, f"rows differ {cut} with a restore after each"


def _stamped(
    strategy: WatermarkStrategy, rows: pl.DataFrame, size: int, *, restores: bool
) -> tuple[list[int | None], int]:
    """The mark of each row, and the watermark at the end."""
    split = SplitWatermarks(strategy)
    marks: list[int | None] = []
    for frame in rows.iter_slices(size):
        stamped = split.stamp(frame)
        nothing: list[int | None] = [None] * frame.height
        marks += stamped[ROW_WATERMARK].to_list() if ROW_WATERMARK in stamped.columns else nothing
        if restores:
            state = json.loads(json.dumps(split.state))
            split = SplitWatermarks(strategy, split.watermark, state)
    return marks, split.watermark
