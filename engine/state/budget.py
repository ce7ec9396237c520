"""How much memory the state of one operator subtask may take, when it lives on disk.

    total = what is not on disk yet (columns) + RocksDB's write buffers + its block cache

Units    bytes. The memory that a firing or a snapshot needs for a moment comes on top: a few parts
         of `part_bytes` each, whatever the size of the state. So does, for each large state, what
         has changed since the last checkpoint: at most `changes_bytes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import ConfigError

_UNITS = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")

_PREFIX = "state.backend.rocksdb.memory."
PER_OPERATOR = _PREFIX + "per-operator"
WRITE_BUFFER_RATIO = _PREFIX + "write-buffer-ratio"
BLOCK_CACHE_RATIO = _PREFIX + "block-cache-ratio"

MIN_TOTAL = 2**20
"""RocksDB alone needs some hundred kilobytes."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The memory of one operator subtask, and what it is for.

    >>> Budget(parse_size("64mb", "memory")).write_buffer_bytes
    16777216
    """

    total_bytes: int = 64 * 2**20
    write_buffer_ratio: float = 0.25
    block_cache_ratio: float = 0.25

    def __post_init__(self) -> None:
        if self.total_bytes < MIN_TOTAL:
            msg = (
                f"{PER_OPERATOR} is too small: got {self.total_bytes} "
                "bytes; pass 1mb or more, e.g. 64mb"
            )
            raise ConfigError(msg)
        ratios = self.write_buffer_ratio, self.block_cache_ratio
        if min(ratios) <= 0 or sum(ratios) >= 1:
            msg = (
                "state.backend.rocksdb.memory leaves nothing for some use: got write-buffer-ratio "
                f"{ratios[0]} and block-cache-ratio {ratios[1]}; pass two shares that are above 0 "
                "and below 1 together, e.g. 0.25 and 0.25"
            )
            raise ConfigError(msg)

    @property
    def write_buffer_bytes(self) -> int:
        """Of what was written to RocksDB and not flushed."""
        return int(self.total_bytes * self.write_buffer_ratio)

    @property
    def block_cache_bytes(self) -> int:
        """Of blocks that were read, with the index and filters of files."""
        return int(self.total_bytes * self.block_cache_ratio)

    @property
    def columns_bytes(self) -> int:
        """Of runs, waiting rows and timers that were not given to RocksDB."""
        return self.total_bytes - self.write_buffer_bytes - self.block_cache_bytes

    @property
    def changes_bytes(self) -> int:
        """Of what has changed in a state, so that the next checkpoint need not hold all of it."""
        return self.columns_bytes // 2

    @property
    def part_bytes(self) -> int:
        """Of one part, when a state is read that does not fit into memory."""
        return self.columns_bytes // 4

    @property
    def block_bytes(self) -> int:
        """Of one block of columns on disk: small enough that a part is several of them."""
        return min(2**17, self.part_bytes // 8)


def budget_of(settings: Mapping[str, str], memory: str | int | None = None) -> Budget:
    """The budget that settings ask for; `memory`: in total, if they do not say. Raises ConfigError.

    >>> budget_of({"state.backend.rocksdb.memory.per-operator": "8mb"}).columns_bytes
    4194304
    """
    default = Budget()
    total = settings.get(PER_OPERATOR) or memory or default.total_bytes
    return Budget(
        parse_size(total, PER_OPERATOR),
        _ratio(settings, WRITE_BUFFER_RATIO, default.write_buffer_ratio),
        _ratio(settings, BLOCK_CACHE_RATIO, default.block_cache_ratio),
    )


def _ratio(settings: Mapping[str, str], key: str, default: float) -> float:
    given = settings.get(key)
    try:
        return default if given is None else float(given)
    except ValueError as error:
        msg = f"setting {key} is not a share: got {given!r}; pass e.g. {default}"
        raise ConfigError(msg) from error


def parse_size(given: str | int, subject: str) -> int:
    """Bytes, from a number or a text with a unit. Raises ConfigError.

    >>> parse_size("1.5 MB", "memory"), parse_size(4096, "memory")
    (1572864, 4096)
    """
    match = _SIZE.fullmatch(str(given).strip().lower())
    if match is None or match[2] not in _UNITS:
        msg = f"{subject} is not a size: got {given!r}; pass e.g. '64mb'"
        raise ConfigError(msg)
    return int(float(match[1]) * _UNITS[match[2]])
