"""What has changed in a state since a checkpoint, so that the next one need not hold all of it.

    open ──freeze(1)──▶ mark 1 | open ──freeze(2)──▶ mark 1 | mark 2 | open

    freeze(3) on 1  =  what is noted in mark 2 and in open; on a checkpoint without a mark: all

A mark holds what was noted up to its checkpoint, since the mark before it. Nobody has to tell which
checkpoints fail: what was noted for one stays noted until a later checkpoint builds on a later one.

Cost     nothing is noted while there is no mark: of a state that is small, and after so much was
         noted that the next checkpoint had better be whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

from engine.state.contract import Increment
from engine.state.handles import DELETED

N = TypeVar("N")

NOTED_BYTES = 128
"""Of a key or an address that is noted, and of its place in a set or dict."""

_MARKS = 16
"""So many checkpoints may be under way, or have failed, since the one to build on."""


@dataclass(frozen=True, slots=True)
class LayerPolicy:
    """When a checkpoint of a state is a layer on an earlier one, and when it is whole."""

    min_rows: int = 20_000
    """A smaller state is about a megabyte, and written in less time than layers are read."""
    max_layers: int = 20
    """Every layer costs each restore a file or two."""
    max_share: float = 0.5
    """Of the rows of a state: when more has changed, or twice as much in all layers together, a
    whole table costs less to read, and not much more to write."""
    max_bytes: int = 2**62
    """What is noted may take so much memory."""


@dataclass(slots=True)
class _Mark(Generic[N]):
    checkpoint_id: int
    noted: N
    base_rows: int
    """Rows of the whole table that its layers lie on."""
    layers: int = 0
    rows: int = 0
    """Rows in all layers."""


class Changes(ABC, Generic[N]):
    """What was noted, by checkpoint. Owned by the thread of the state."""

    def __init__(self, policy: LayerPolicy) -> None:
        self._policy = policy
        self._marks: list[_Mark[N]] = []
        self._open = self._none()
        self._room = 0.0
        """So much may be noted until the next freeze, before a whole one is better."""
        self._room_bytes = policy.max_bytes

    @property
    def tracks(self) -> bool:
        """Whether changes have to be noted; after a freeze, whether a later one may build on it."""
        return bool(self._marks)

    def freeze(self, increment: Increment, rows: int) -> N | None:
        """What has changed since the base; None when the state, which has `rows`, goes whole."""
        if rows < self._policy.min_rows:
            self._forget()
            return None
        base = self._base(increment.base)
        changed = None if base is None else self._since(base, rows)
        mark = _Mark(increment.id, self._open, rows)
        if base is not None and changed is not None:
            size = self._size(changed)
            mark.layers, mark.rows = base.layers + (size > 0), base.rows + size
            mark.base_rows = base.base_rows
        self._push(mark)
        noted = [mark.noted for mark in self._marks[1:]]
        self._room = rows * self._policy.max_share - sum(map(self._size, noted))
        self._room_bytes = self._policy.max_bytes - sum(map(self._bytes, noted))
        return changed

    def _push(self, mark: _Mark[N]) -> None:
        self._marks.append(mark)
        self._open = self._none()
        if len(self._marks) > _MARKS:
            # Its checkpoint has failed long ago; if not, the one that would build on it is whole.
            between = self._marks.pop(1)
            self._marks[1].noted = self._union([between.noted, self._marks[1].noted])
        # There is no mark any more to which this would be the change.
        self._marks[0].noted = self._none()

    def _base(self, checkpoint_id: int) -> _Mark[N] | None:
        """The mark to build on; older ones are not needed any more."""
        for index, mark in enumerate(self._marks):
            if mark.checkpoint_id == checkpoint_id:
                del self._marks[:index]
                return mark
        return None

    def _since(self, base: _Mark[N], rows: int) -> N | None:
        changed = self._union([*(mark.noted for mark in self._marks[1:]), self._open])
        size = self._size(changed)
        share = self._policy.max_share
        too_much = size > rows * share or base.rows + size > base.base_rows * 2 * share
        return None if too_much or base.layers >= self._policy.max_layers else changed

    def _check(self) -> None:
        """Forget everything when there is more than is worth to be remembered."""
        if self._is_too_much():
            self._forget()

    def _is_too_much(self) -> bool:
        return self._size(self._open) > self._room or self._bytes(self._open) > self._room_bytes

    def _forget(self) -> None:
        self._marks.clear()
        self._open = self._none()

    @abstractmethod
    def _none(self) -> N: ...

    @abstractmethod
    def _size(self, noted: N) -> int: ...

    @abstractmethod
    def _bytes(self, noted: N) -> int:
        """The memory that it takes, roughly."""

    @abstractmethod
    def _union(self, noted: Sequence[N]) -> N:
        """Everything, of which the later stands behind."""


K = TypeVar("K")


Puts = tuple[dict[K, Any], ...]
"""What was put for each key, or that it was `DELETED`; of several, the last counts."""


class PutChanges(Changes[Puts[K]]):
    """What keys have now that had something else: so a barrier need not look them up."""

    def note(self, puts: Mapping[K, Any]) -> None:
        """These were put."""
        if self._marks:
            self._open[0].update(puts)
            self._check()

    def _none(self) -> Puts[K]:
        return ({},)

    def _size(self, noted: Puts[K]) -> int:
        return sum(map(len, noted))

    def _bytes(self, noted: Puts[K]) -> int:
        return self._size(noted) * NOTED_BYTES

    def _union(self, noted: Sequence[Puts[K]]) -> Puts[K]:
        # References: to put them together is left to the thread that writes them.
        return tuple(chain.from_iterable(noted))


@dataclass(slots=True)
class LastPuts(Generic[K]):
    """What was put last, put together by whoever asks first."""

    puts: Puts[K]

    def items(self) -> dict[K, Any]:
        """Whatever is not deleted, by key."""
        return {key: held for key, held in self._last().items() if held is not DELETED}

    def deleted(self) -> list[K]:
        """The keys that have nothing any more."""
        return [key for key, held in self._last().items() if held is DELETED]

    def _last(self) -> dict[K, Any]:
        if len(self.puts) > 1:
            self.puts = (dict(chain.from_iterable(each.items() for each in self.puts)),)
        return self.puts[0]
