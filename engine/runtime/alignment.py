"""Barrier alignment of one subtask: no row after a barrier passes before the snapshot is taken.

    first barrier of N --> that channel is blocked --> ... --> last barrier --> aligned

Order    of several checkpoints under way too: a blocked channel keeps its next barrier back, so one
         is aligned after the other. A channel on which a newer barrier comes first has lost the
         older one, which so can never be complete: it is given up. A stale barrier is dropped.
Source   Carbone et al., Lightweight Asynchronous Snapshots for Distributed Dataflows, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.elements import Barrier, Micros


@dataclass(frozen=True, slots=True)
class Aligned:
    """Every channel has reached the barrier."""

    barrier: Barrier
    first_barrier: Micros


class Alignment:
    """Which channels wait for the others. Channels are 0 .. n - 1."""

    def __init__(self, channels: int) -> None:
        self._channels = channels
        self._ended: set[int] = set()
        self._arrived: set[int] = set()
        self._barrier: Barrier | None = None
        self._first_barrier = Micros(0)
        self._settled = 0
        """All checkpoints up to this one are over here."""
        self._aborted: set[int] = set()
        """Those above it that were given up."""

    @property
    def checkpoint_id(self) -> int | None:
        """The checkpoint that is being aligned, if any."""
        return None if self._barrier is None else self._barrier.checkpoint_id

    def blocks(self, channel: int) -> bool:
        """Whether nothing may be delivered from this channel now."""
        return channel in self._arrived

    def on_barrier(self, channel: int, barrier: Barrier, now: Micros) -> Aligned | None:
        """Take a barrier; say when it was the last one needed."""
        if barrier.checkpoint_id <= self._settled or barrier.checkpoint_id in self._aborted:
            return None
        if self._barrier is None or barrier.checkpoint_id > self._barrier.checkpoint_id:
            self._arrived.clear()
            self._barrier, self._first_barrier = barrier, now
        if barrier.checkpoint_id == self._barrier.checkpoint_id:
            self._arrived.add(channel)
        return self._complete()

    def on_end_of_input(self, channel: int) -> Aligned | None:
        """No row can follow on this channel, so nothing waits for its barriers any more."""
        self._ended.add(channel)
        return self._complete()

    def abort(self, checkpoint_id: int) -> None:
        """Give one checkpoint up, and drop its barriers that are still under way."""
        if checkpoint_id > self._settled:
            self._aborted.add(checkpoint_id)
        if self.checkpoint_id == checkpoint_id:
            self._reset()

    def _complete(self) -> Aligned | None:
        if self._barrier is None or len(self._arrived | self._ended) < self._channels:
            return None
        aligned = Aligned(self._barrier, self._first_barrier)
        self._settled = self._barrier.checkpoint_id
        self._aborted = {aborted for aborted in self._aborted if aborted > self._settled}
        self._reset()
        return aligned

    def _reset(self) -> None:
        self._arrived.clear()
        self._barrier = None
