"""The work that peers and Headwater do, and the events that it is done on.

    tumbling   count and sum per key and second             many-keys  the same, 100,000 keys
    sliding    count and sum per key, 60 s by 1 s           session    count and sum, gap 200 ms
    running    sum of the values of a key so far, per event json       tumbling, from JSON lines

Shapes   key: int64 in [0, keys); time: ms; value: whole float64 in [0, 1024), so sums are exact.
         100 events for each ms of event time, each up to `LAG` late; for sessions a key has events
         for half a second, and then none for nine times that.
Needs    NumPy only: the scripts of peers import it where Headwater is not installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BEGAN = 1_767_225_600_000
"""ms; on a whole minute, so that every peer aligns its windows alike."""
PER_MS = 100
LAG = 450
BOUND = 500
"""ms of out-of-orderness that peers allow for; more than `LAG`, so no event is late."""
SIZE, SLIDE = 1_000, 60_000
"""ms: a tumbling window, which is also the step of the sliding one; the sliding window."""
GAP = 200
BURST = 500
TURNS = 10
TABLE = 250_000
"""Events repeat after so many, but for their times; a multiple of `PER_MS`."""
FAR = BEGAN + 100_000_000
"""ms; an event of this time closes all windows where a peer does not at the end of its input."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is done, and on how many rows."""

    name: str
    ours: int
    """Rows for Headwater."""
    share: float = 1.0
    """Part of a peer's usual rows."""
    keys: int = 1_000

    def events(self, lo: int, hi: int) -> tuple[Ints, Ints, Floats]:
        """Keys, times and values of the events [lo, hi), in order of arrival."""
        pieces = [self._piece(at, min(at + TABLE, hi)) for at in range(lo, hi, TABLE)]
        keys = np.concatenate([key for key, _, _ in pieces])
        times = np.concatenate([time for _, time, _ in pieces])
        return keys, times, np.concatenate([value for _, _, value in pieces])

    def _piece(self, lo: int, hi: int) -> tuple[Ints, Ints, Floats]:
        """At most a table of events."""
        place = lo % TABLE
        keys, turns, values = _table(self.keys)
        piece = slice(place, place + hi - lo)
        key, time = keys[piece], turns[piece] + (BEGAN + (lo - place) // PER_MS)
        if self.name == "session":
            key = key // TURNS * TURNS + time // BURST % TURNS
        return key, time, values[piece]


WORKS = {
    work.name: work
    for work in (
        Work("tumbling", 20_000_000),
        Work("many-keys", 4_000_000, keys=100_000),
        Work("sliding", 6_000_000, share=0.1),
        Work("session", 6_000_000, share=0.5),
        Work("running", 1_000_000),
        Work("json", 2_000_000, share=0.5),
    )
}


@cache
def _table(keys: int) -> tuple[Ints, Ints, Floats]:
    """Keys, times after `BEGAN` and values; twice, so that no slice runs over the end."""
    luck = np.random.RandomState(1)
    key, value = luck.randint(0, keys, TABLE), luck.randint(0, 1_024, TABLE).astype(np.float64)
    turn = np.arange(2 * TABLE) // PER_MS - np.tile(luck.randint(0, LAG, TABLE), 2)
    return np.tile(key, 2).astype(np.int64), turn, np.tile(value, 2)


def write_lines(work: Work, rows: int, path: Path) -> None:
    """Write the events as lines {"key":"17","time":1767225600000,"value":3.0}."""
    keys, times, values = work.events(0, rows)
    with path.open("w") as file:
        for key, time, value in zip(keys.tolist(), times.tolist(), values.tolist(), strict=True):
            file.write(f'{{"key":"{key}","time":{time},"value":{value}}}\n')
