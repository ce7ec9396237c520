"""Tumbling count and sum for peers that have no windows, as a user would write it in Python."""

from __future__ import annotations

from benchmarks.peers.work import BOUND, SIZE

Result = tuple[int, int, int, float]
"""Key, start of the window in ms, count, sum."""


class Panes:
    """Open windows; one that the latest time has passed by the bound is given out."""

    def __init__(self) -> None:
        self._open: dict[int, dict[int, list[float]]] = {}
        self._limit = 0

    def add(self, key: int, time: int, value: float) -> list[Result]:
        """Count an event; gives the windows that it closes."""
        window = time // SIZE
        cells = self._open.get(window)
        if cells is None:
            cells = self._open[window] = {}
        cell = cells.get(key)
        if cell is None:
            cells[key] = [1, value]
        else:
            cell[0] += 1
            cell[1] += value
        limit = (time - BOUND) // SIZE
        if limit <= self._limit:
            return []
        self._limit = limit
        return self._closed([window for window in self._open if window < limit])

    def rest(self) -> list[Result]:
        """Give all that is still open."""
        return self._closed(list(self._open))

    def _closed(self, windows: list[int]) -> list[Result]:
        return [
            (key, window * SIZE, int(count), total)
            for window in windows
            for key, (count, total) in self._open.pop(window).items()
        ]
