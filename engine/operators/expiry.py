"""Expiry of states with a TTL: what no row can see any more is removed.

    write --note--> heap of (when, key) --sweep(watermark)--> the backend forgets

Guarantee  nobody can see when a sweep happens: a value is hidden from the moment that its time is
           over for a row, and no row comes whose time lies before the watermark.
Cost     one entry in memory per key; rebuilt from the state after a restore.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Any

from engine.elements import MAX_TIME, Micros
from engine.functions.states import ListState, MapState, State
from engine.functions.ttl import TimeDomain
from engine.state.handles import DELETED, Key, ValueHandle


class Expiry:
    """When to look again at the keys of one state."""

    def __init__(self, declared: State, handle: ValueHandle) -> None:
        assert declared.ttl is not None
        self.domain: TimeDomain = declared.ttl.domain
        self._declared = declared
        self._handle = handle
        self._heap: list[tuple[Micros, Key]] = []
        self._noted: set[Key] = set()
        self._note_all(handle.items())

    @property
    def first(self) -> Micros:
        """When the first key has to be looked at; MAX_TIME for never."""
        return self._heap[0][0] if self._heap else MAX_TIME

    def note(self, changes: Mapping[Key, Any]) -> None:
        """Remember keys that were written."""
        self._note_all(changes.items())

    def _note_all(self, held: Iterable[tuple[Key, Any]]) -> None:
        for key, value in held:
            # One entry per key: if it lives longer by then, it is looked at again.
            if value is not DELETED and key not in self._noted:
                self._noted.add(key)
                heappush(self._heap, (_next_expiry(self._declared, value), key))

    def sweep(self, time: Micros) -> None:
        """Remove everything whose time is over at `time`."""
        ripe: list[Key] = []
        while self._heap and self._heap[0][0] <= time:
            ripe.append(heappop(self._heap)[1])
        if not ripe:
            return
        self._noted.difference_update(ripe)
        held = self._handle.get_many(ripe)
        left = {key: _left(self._declared, value, time) for key, value in held.items()}
        self._handle.put_many({key: each for key, each in left.items() if each is not held[key]})
        self._note_all(left.items())


def _left(declared: State, held: Any, time: Micros) -> Any:
    """What a key still has at `time`; DELETED for nothing."""
    assert declared.ttl is not None
    after = declared.ttl.after
    match declared:
        case ListState():
            left: Any = [item for item in held if item[-1] + after > time]
        case MapState():
            left = {key: item for key, item in held.items() if item[-1] + after > time}
        case _:
            return held if held[-1] + after > time else DELETED
    return left or DELETED


def _next_expiry(declared: State, held: Any) -> Micros:
    """When something of what a key has comes to its end."""
    assert declared.ttl is not None
    return Micros(min(_written(declared, held)) + declared.ttl.after)


def _written(declared: State, held: Any) -> Iterator[int]:
    match declared:
        case ListState():
            return (item[-1] for item in held)
        case MapState():
            return (item[-1] for item in held.values())
        case _:
            return iter((held[-1],))
