"""Windows that keep their rows: with triggers, evictors, functions of whole windows.

operator.py    waiting rows, lateness, watermarks, clock
assign.py      rows to windows, in the order of their turns
setup.py       what all calls have in common; what is due, what fires
turn.py        triggers and timers of one call: what fires, what is purged, what is over
sessions.py    the same for windows that merge
contents.py    what a window holds: rows, or an accumulator
folds.py       reduce and aggregate
results.py     what fires, as columns
"""

from __future__ import annotations

from engine.operators.windows.rows.assign import AnyWindow
from engine.operators.windows.rows.contents import Contents, FoldContents, RowContents
from engine.operators.windows.rows.folds import Aggregated, Fold, Reduced
from engine.operators.windows.rows.operator import WindowRows
from engine.operators.windows.rows.results import (
    Aggregates,
    Applied,
    Folded,
    Results,
    WindowContext,
    WindowFunction,
)

__all__ = [
    "Aggregated",
    "Aggregates",
    "AnyWindow",
    "Applied",
    "Contents",
    "Fold",
    "FoldContents",
    "Folded",
    "Reduced",
    "Results",
    "RowContents",
    "WindowContext",
    "WindowFunction",
    "WindowRows",
]
