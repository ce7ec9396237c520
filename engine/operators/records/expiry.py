"""Expiry of states with a TTL: what no row can see any more is removed.

    write --note--> agenda of the backend --sweep(watermark)--> the backend forgets

Guarantee  nobody can see when a sweep happens: a value is hidden from the moment that its time is
           over for a row, and no row comes whose time lies before the watermark.
Cost     an entry of the agenda per key, or some on disk; the state is never searched, but once
         after a restore.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.elements import Micros
from engine.functions.states import ListState, MapState, State
from engine.functions.ttl import TimeDomain
from engine.state.handles import DELETED, Key, ValueHandle

_GRAINS = 4
"""A value is forgotten at most a quarter of its TTL late."""

_AT_ONCE = 10_000
"""So many keys are looked at together."""


class Expiry:
    """When to look again at the keys of one state."""

    def __init__(self, declared: State, handle: ValueHandle) -> None:
        assert declared.ttl is not None
        self.domain: TimeDomain = declared.ttl.domain
        self._declared = declared
        self._handle = handle
        self._agenda = handle.agenda(declared.ttl.after // _GRAINS)
        self._note_all(handle.items())

    @property
    def first(self) -> Micros:
        """When the first key has to be looked at; MAX_TIME for never."""
        return self._agenda.first()

    def note(self, changes: Mapping[Key, Any]) -> None:
        """Remember keys that were written."""
        self._note_all(changes.items())

    def _note_all(self, held: Iterable[tuple[Key, Any]]) -> None:
        for key, value in held:
            # If it lives longer by then, it is looked at again.
            if value is not DELETED:
                self._agenda.note(key, _next_expiry(self._declared, value))

    def sweep(self, time: Micros) -> None:
        """Remove everything whose time is over at `time`."""
        while ripe := self._agenda.take(time, _AT_ONCE):
            held = self._handle.get_many(ripe)
            left = {key: _left(self._declared, value, time) for key, value in held.items()}
            self._handle.put_many(
                {key: each for key, each in left.items() if each is not held[key]}
            )
            self._note_all(left.items())


def _left(declared: State, held: Any, time: Micros) -> Any:
    """What a key still has at `time`: the same object if all; DELETED for nothing."""
    assert declared.ttl is not None
    after = declared.ttl.after
    match declared:
        case ListState():
            left = [item for item in held if item[-1] + after > time]
            return held if len(left) == len(held) else left or DELETED
        case MapState():
            entries = held.items()
            over = [key for key, item in entries if item[-1] + after <= time]
            if len(over) == len(entries):
                return DELETED
            return _without(held, over) if over else held
        case _:
            return held if held[-1] + after > time else DELETED


def _without(held: Any, keys: Iterable[Any]) -> Any:
    left = held.copy()
    for key in keys:
        del left[key]
    return left


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
