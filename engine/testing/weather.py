"""The weather of a storage: most of the time it is well; for a spell it is full, or slow.

clear --a spell begins--> full | slow --it has lasted--> clear

clear   a write succeeds; a few fail all the same
full    every write fails: that of a manifest like that of a state
slow    a write stops before every file, until its time has come (`disk.py`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from random import Random

from engine.elements import Micros
from engine.errors import StorageError


class Sky(StrEnum):
    """What the storage is like."""

    CLEAR = "clear"
    FULL = "full"
    SLOW = "slow"


class Weather:
    """Decides what becomes of each write."""

    def __init__(self, random: Random, failure: float = 0.0, longest_us: int = 1) -> None:
        """`failure`: the part of all writes that fail; `longest_us`: of a spell."""
        self.sky = Sky.CLEAR
        self.seen = Counter[Sky]()
        """How many spells there were."""
        self.wait: Callable[[], None] | None = None
        """How the write that has the turn waits for the next one."""
        self._random = random
        self._failure = failure
        self._longest_us = longest_us
        self._ends = Micros(0)

    def begin(self, sky: Sky, now: Micros) -> None:
        """Let a spell begin; one that lasts goes on."""
        if self.sky is Sky.CLEAR:
            self.sky = sky
            self.seen[sky] += 1
            self._ends = Micros(now + self._random.randint(1, self._longest_us))

    def pass_to(self, now: Micros) -> None:
        """Time has come to `now`: a spell may be over."""
        if now >= self._ends:
            self.sky = Sky.CLEAR

    def before_write(self, address: str) -> None:
        """Let a file be written, or fail; a slow one waits for its turn first."""
        if self.wait is not None and self.sky is Sky.SLOW:
            self.wait()
        if self.sky is Sky.FULL or self._random.random() < self._failure:
            msg = f"{address} cannot be written: the disk is full; make room"
            raise StorageError(msg)
