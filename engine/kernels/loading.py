"""Which loops this process uses: the plain ones until the compiled ones are loaded.

Cost     importing Numba and loading from its cache takes about 0.6 s, compiling with an empty cache
         about five: workers load on a thread of their own, and wait for it only so long.
"""

from __future__ import annotations

import logging
import threading
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.kernels import plain

log = logging.getLogger(__name__)

Words = npt.NDArray[np.uint64]
Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Small = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]


class Kernels(Protocol):
    """The loops, as `plain` describes them."""

    def intern_words(
        self, words: Words, slots: Small, marks: Small, known: Words, count: int, fresh: Whole
    ) -> int:
        """Number words by first appearance."""

    def index(self, hashes: Words, count: int, marks: Small) -> None:
        """Fill an empty table of slots."""

    def intern_text(
        self,
        offsets: Whole,
        data: Bytes,
        slots: Small,
        marks: Small,
        hashes: Words,
        starts: Whole,
        arena: Bytes,
        count: int,
        fresh: Whole,
    ) -> int:
        """Number texts by first appearance."""

    def place(
        self,
        times: Whole,
        slots: Small,
        cells: Small,
        grid: tuple[int, int, int],
        ends: Whole,
        stride: int,
        watermark: int,
    ) -> int:
        """Find the cell of each row in a grid of slices and slots."""

    def count(self, cells: Small, counts: Whole) -> None:
        """Add one per row."""

    def add_whole(self, cells: Small, values: Whole, sums: Whole) -> None:
        """Add integers."""

    def outside(self, bits: Whole, rows: npt.NDArray[np.bool_]) -> int:
        """Mark the floats that `add_exact` cannot take."""

    def add_exact(self, cells: Small, bits: Whole, limbs: Whole) -> None:
        """Add floats to four limbs each."""

    def read_limbs(self, cells: Whole, limbs: Whole, found: Whole) -> None:
        """Copy the limbs of some cells to columns, and carry."""

    def round_limbs(self, limbs: Whole, unit: int, sums: Floats) -> None:
        """The nearest floats of carried limbs."""

    def keep_whole(
        self, cells: Small, values: Whole, best: Whole, seen: npt.NDArray[np.bool_], largest: bool
    ) -> None:
        """Keep the smallest or largest integer."""

    def keep_float(
        self, cells: Small, values: Floats, best: Floats, seen: npt.NDArray[np.bool_], largest: bool
    ) -> None:
        """Keep the smallest or largest float."""

    def join_sessions(
        self,
        keys: Small,
        fragments: tuple[Whole, Whole, Whole],
        gap: int,
        heads: Small,
        nexts: Small,
        firsts: Whole,
        lasts: Whole,
        free: Small,
        at: Small,
        gone: Small,
        into: Small,
    ) -> tuple[int, int]:
        """Find the session of each fragment, and join those that it links."""

    def close_sessions(
        self, limit: int, owners: Small, heads: Small, nexts: Small, lasts: Whole, closed: Small
    ) -> tuple[int, int]:
        """Take the sessions out of their chains whose last time is up to a limit."""

    def latest_rows(
        self,
        slots: Small,
        times: Whole,
        latest: Whole,
        fresh: tuple[Whole, Whole],
        row_times: Whole,
        ttl: int,
        found: npt.NDArray[np.uint32],
    ) -> None:
        """Find the last row of each slot up to a time."""

    def near(
        self,
        asked: tuple[Small, Whole],
        rows: tuple[Small, Whole],
        lower: int,
        upper: int,
        begins: Whole,
        ends: Whole,
    ) -> None:
        """Find where the rows near each slot and time lie."""

    def running_watermark(self, times: Whole, bound: int, watermark: int) -> tuple[int, bool]:
        """The watermark after some rows, and whether any was behind it."""


class _Using:
    """One choice per process."""

    kernels: Kernels = plain


def active() -> Kernels:
    """The loops to use now."""
    return _Using.kernels


def load() -> None:
    """Use the compiled loops from now on; compile what the cache does not have."""
    from engine.kernels import compiled

    _Using.kernels = compiled


class Loading:
    """Loads on a thread of its own, once it is wanted; the plain loops do meanwhile."""

    def __init__(self) -> None:
        self._thread = threading.Thread(target=_try_to_load, name="kernels", daemon=True)
        self._changing = threading.Lock()
        self._begun = False

    def want(self) -> None:
        """Begin, if that has not been done. Any thread."""
        with self._changing:
            if not self._begun:
                self._begun = True
                self._thread.start()

    def wait(self, timeout_s: float) -> None:
        """Wait a moment for the end."""
        self.want()
        self._thread.join(timeout_s)


def _try_to_load() -> None:
    try:
        load()
    except Exception:
        log.exception("compiled kernels do not load; this process stays with the slower plain ones")
