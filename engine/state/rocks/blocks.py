"""Blocks: frames on disk, cut into pieces that are read one by one.

    frame, sorted --cut--> pieces of some 128 KiB --Arrow IPC--> one address each
    ranges   spans of key groups whose rows fit into memory together

Shapes   a block knows the span [lo, hi) of what it is sorted by: key groups, or event time.
Cost     some 25 µs to write or read a block. Knowing where they are takes some 300 bytes each.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl
from rocksdict import WriteBatch

from engine.elements import KEY_GROUP
from engine.errors import InternalError

Span = tuple[int, int]
"""Key groups, or times: [lo, hi)."""


@dataclass(frozen=True, slots=True)
class Block:
    """Where some rows are, and how much."""

    address: bytes
    lo: int
    hi: int
    rows: int
    size_bytes: int
    """In memory."""

    def overlaps(self, span: Span) -> bool:
        """Whether it may have rows of a span."""
        return self.lo < span[1] and span[0] < self.hi


class Reader(Protocol):
    """A store, or a view of one."""

    def get(self, addresses: Sequence[bytes]) -> list[bytes | None]:
        """What there is at some addresses."""


def cut(
    frame: pl.DataFrame, by: str, addresses: Iterator[bytes], batch: WriteBatch, block_bytes: int
) -> list[Block]:
    """Write a frame that is sorted by a column as blocks at fresh addresses."""
    pieces = max(1, int(frame.estimated_size()) // max(1, block_bytes))
    blocks = []
    for piece in frame.iter_slices(max(1, frame.height // pieces)):
        address, order = next(addresses), piece.get_column(by)
        batch.put(address, packed(piece))
        size_bytes = int(piece.estimated_size())
        blocks.append(Block(address, int(order[0]), int(order[-1]) + 1, piece.height, size_bytes))
    return blocks


def read(reader: Reader, blocks: Iterable[Block]) -> list[pl.DataFrame]:
    """The rows of blocks, a frame each."""
    addresses = [block.address for block in blocks]
    found = zip(addresses, reader.get(addresses), strict=True)
    return [unpacked(address, raw) for address, raw in found]


def within(reader: Reader, blocks: Iterable[Block], span: Span) -> list[pl.DataFrame]:
    """The rows of blocks that are in a span of key groups."""
    return of_span(read(reader, [block for block in blocks if block.overlaps(span)]), span)


def of_span(frames: Iterable[pl.DataFrame], span: Span) -> list[pl.DataFrame]:
    """The rows of frames that are in a span of key groups; no frames without any."""
    group = pl.col(KEY_GROUP)
    rows = (frame.filter((group >= span[0]) & (group < span[1])) for frame in frames)
    return [frame for frame in rows if frame.height]


def size_of(frames: Iterable[pl.DataFrame]) -> int:
    """Bytes of frames in memory."""
    return sum(int(frame.estimated_size()) for frame in frames)


def ranges(blocks: Iterable[Block], groups: Span, also_bytes: int, part_bytes: int) -> list[Span]:
    """Cut a range of key groups so that the rows of each span fit into `part_bytes`, or are of one
    key group. `also_bytes`: of rows that are in no block, spread over all key groups.
    """
    lo, hi = groups
    weights = np.full(hi - lo, also_bytes / max(1, hi - lo))
    for block in blocks:
        weights[block.lo - lo : block.hi - lo] += block.size_bytes / (block.hi - block.lo)
    return list(_spans(weights.tolist(), lo, part_bytes))


def _spans(weights: Sequence[float], lo: int, part_bytes: int) -> Iterator[Span]:
    start, held = lo, 0.0
    for group, weight in enumerate(weights, lo):
        if held and held + weight > part_bytes:
            yield start, group
            start, held = group, 0.0
        held += weight
    yield start, lo + len(weights)


def packed(frame: pl.DataFrame) -> bytes:
    """A frame as bytes."""
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()


def unpacked(address: bytes, raw: bytes | None) -> pl.DataFrame:
    """The frame that was stored at an address."""
    if raw is None:
        msg = f"state block {address.hex()} is not there: it was written and never removed"
        raise InternalError(msg)
    return pl.read_ipc_stream(io.BytesIO(raw))
