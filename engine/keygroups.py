"""Key -> key group -> subtask: who owns which keys, and who gets what on a rescale.

    key --hash--> key group in [0, max_parallelism) --range--> subtask in [0, parallelism)

Half-open ranges of key groups go to subtasks in order. The hash depends on the key's value and
type only, never on the process, the platform or the library's version, because snapshots store it.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_MAX_PARALLELISM = 128


@dataclass(frozen=True, slots=True, order=True)
class KeyGroupRange:
    """The key groups [lo, hi) of one subtask."""

    lo: int
    hi: int

    def __contains__(self, group: int) -> bool:
        return self.lo <= group < self.hi

    def overlaps(self, other: KeyGroupRange) -> bool:
        """Whether any key group lies in both."""
        return self.lo < other.hi and other.lo < self.hi


def range_of(subtask: int, parallelism: int, max_parallelism: int) -> KeyGroupRange:
    """The key groups of a subtask.

    >>> range_of(0, 3, 128), range_of(2, 3, 128)
    (KeyGroupRange(lo=0, hi=43), KeyGroupRange(lo=86, hi=128))
    """
    lo = -(-subtask * max_parallelism // parallelism)
    hi = -(-(subtask + 1) * max_parallelism // parallelism)
    return KeyGroupRange(lo, hi)


def subtask_of(group: int, parallelism: int, max_parallelism: int) -> int:
    """The subtask that owns a key group.

    >>> subtask_of(42, 3, 128), subtask_of(43, 3, 128)
    (0, 1)
    """
    return group * parallelism // max_parallelism
