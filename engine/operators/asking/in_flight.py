"""Rows in flight: in which order rows leave whose answers come in any order.

    ordered     1 2 3 | W | 4 5      a row leaves when all before it have left
    unordered   2 3 1 | W | 5 4      as answers come, but no row and no watermark passes another

Shapes   the bars are elements that must not overtake rows; they cut the rows into segments.
Cost     elements that nothing lies between are one: there are never more than rows.
Source   Flink's AsyncDataStream: ordered and unordered wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.elements import Idle, Micros, Watermark
from engine.operators.asking.requests import Control
from engine.state.handles import Key


@dataclass(eq=False, slots=True)
class Entry:
    """One row."""

    key: Key
    """Of the state that remembers it."""
    row: Any
    time: Micros | None
    mark: Micros | None
    """Its own watermark, when it came behind it."""
    outcome: Iterable[Any] | None = None
    """What the function gave for it; None: not yet."""
    segment: _Segment | None = None


@dataclass(eq=False, slots=True)
class _Segment:
    """The rows between two elements, and the element that ends them."""

    left: int = 0
    rows: deque[Entry] = field(default_factory=deque)
    """In order; not used when order does not matter."""
    finished: list[Entry] = field(default_factory=list)
    """In the order of their answers; not used when the order of the rows matters."""
    end: Control | None = None

    def take(self) -> list[Entry]:
        """Remove the rows that may leave."""
        ready, self.finished = self.finished, []
        while self.rows and self.rows[0].outcome is not None:
            ready.append(self.rows.popleft())
        self.left -= len(ready)
        return ready


class InFlight:
    """All rows and elements that have not left yet."""

    def __init__(self, *, ordered: bool) -> None:
        self._ordered = ordered
        self._segments = deque([_Segment()])
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, entries: Iterable[Entry]) -> None:
        """Add rows behind everything else."""
        segment = self._segments[-1]
        for entry in entries:
            entry.segment = segment
            segment.left += 1
            self._count += 1
            if self._ordered:
                segment.rows.append(entry)

    def hold(self, element: Control) -> bool:
        """Add an element behind everything else; False when it need not wait."""
        if not self._count:
            return False
        if isinstance(element, Watermark):
            self._forget_earlier()
        self._segments[-1].end = element
        self._segments.append(_Segment())
        return True

    def _forget_earlier(self) -> None:
        """A later watermark says all that those say which no row has come behind."""
        segments = self._segments
        while not segments[-1].left and len(segments) > 1:
            if not isinstance(segments[-2].end, Watermark | Idle):
                return
            segments.pop()
            segments[-1].end = None

    def finish(self, entry: Entry, outcome: Iterable[Any]) -> None:
        """Note what the function gave for a row."""
        entry.outcome = outcome
        if not self._ordered and entry.segment is not None:
            entry.segment.finished.append(entry)

    def take(self) -> Iterator[list[Entry] | Control]:
        """Remove and give what may leave now, in order."""
        while True:
            segment = self._segments[0]
            ready = segment.take()
            if ready:
                self._count -= len(ready)
                yield ready
            if segment.left or segment.end is None:
                return
            self._segments.popleft()
            yield segment.end
