"""The loops in plain NumPy: what the compiled ones must equal, and what runs until those are ready.

    rows --intern--> slots --place--> cells --count, add, keep--> one aggregate per cell

    cell = block of the slice * stride + slot of the key

Shapes   one entry per row in `words`, `times`, `values`, `slots` and `cells`; one per cell in
         `counts`, `sums`, `best` and `seen`, and four in `limbs`. What is written is an argument.
Units    times are microseconds; `bits` are float64 seen as int64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.rounding import DIGIT_BITS, carried, rounded

Words = npt.NDArray[np.uint64]
Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Small = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

FACTOR = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: multiplying by it spreads consecutive numbers (Knuth)."""
_LOW = 2**64 - 1
LOWEST = (1023 - 43) << 52
"""Bits of 2^-43: all 53 bits of a float from here up are multiples of 2^-96."""
BEYOND = (1023 + 64) << 52
"""Bits of 2^64."""
SHIFT = 1075 - 96
"""An exponent field less this is the place of the float's last bit in units of 2^-96."""
FREE = -(2**63)
"""The end of a block that no slice has."""
NEVER = 2**63 - 1
"""Later than every time."""
LATE = -1
"""What `place` returns when some row is late."""


def intern_words(
    words: Words, slots: Small, marks: Small, known: Words, count: int, fresh: Whole
) -> int:
    """Number 64-bit words by first appearance; return how many are known now.

    `marks` is an open-addressing table of slot + 1, 0 where free, at most half full; `known` has
    the word of each slot, `fresh` gets the row where each new one appeared first.
    """
    mask = len(marks) - 1
    at = _home(words, mask)
    pending = np.arange(len(words))
    unknown: list[npt.NDArray[np.intp]] = []
    while len(pending):
        slot = marks[at[pending]] - 1
        found = (slot >= 0) & (known[slot] == words[pending])
        slots[pending[found]] = slot[found]
        unknown.append(pending[slot < 0])
        pending = pending[(slot >= 0) & ~found]
        at[pending] = (at[pending] + 1) & mask
    rows = np.sort(np.concatenate(unknown)) if unknown else np.empty(0, dtype=np.intp)
    if not len(rows):
        return count
    _, first, which = np.unique(words[rows], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    slots[rows] = count + rank[which]
    for new, row in enumerate(rows[first[order]].tolist()):  # per new key
        _insert(marks, int(_home(words[row : row + 1], mask)[0]), count + new)
        known[count + new], fresh[new] = words[row], row
    return count + len(order)


def _home(words: Words, mask: int) -> npt.NDArray[np.int64]:
    mixed = (words ^ words >> np.uint64(32)) * np.uint64(FACTOR)
    homes: npt.NDArray[np.int64] = (mixed >> np.uint64(32)).astype(np.int64) & mask
    return homes


def _insert(marks: Small, at: int, slot: int) -> None:
    while marks[at]:
        at = (at + 1) & (len(marks) - 1)
    marks[at] = slot + 1


def index(hashes: Words, count: int, marks: Small) -> None:
    """Fill an empty table with the slots of some hashes."""
    homes = (hashes[:count] >> np.uint64(32)).astype(np.int64) & (len(marks) - 1)
    for slot, home in enumerate(homes.tolist()):  # per key
        _insert(marks, home, slot)


def intern_text(
    offsets: Whole,
    data: Bytes,
    slots: Small,
    marks: Small,
    hashes: Words,
    starts: Whole,
    arena: Bytes,
    count: int,
    fresh: Whole,
) -> int:
    """Number texts by first appearance; return how many are known now.

    Row n is `data[offsets[n]:offsets[n + 1]]`, and the text of slot n is
    `arena[starts[n]:starts[n + 1]]`; otherwise as `intern_words`.
    """
    first = count
    seen: dict[bytes, int] = {}
    for row in range(len(slots)):  # only until the compiled loop is ready
        text = data[offsets[row] : offsets[row + 1]].tobytes()
        slot = seen.get(text)
        if slot is None:
            hash_ = hash_text(text)
            slot = _find_text(text, hash_, marks, hashes, starts, arena, count)
            if slot == count:
                _insert(marks, hash_ >> 32 & (len(marks) - 1), slot)
                start = int(starts[count])
                starts[count + 1] = start + len(text)
                arena[start : start + len(text)] = np.frombuffer(text, dtype=np.uint8)
                hashes[count], fresh[count - first] = hash_, row
                count += 1
            seen[text] = slot
        slots[row] = slot
    return count


def _find_text(
    text: bytes,
    hash_: int,
    marks: Small,
    hashes: Words,
    starts: Whole,
    arena: Bytes,
    count: int,
) -> int:
    """The slot of a text; `count` when it has none."""
    mask = len(marks) - 1
    at = hash_ >> 32 & mask
    while slot := int(marks[at]):
        same = int(hashes[slot - 1]) == hash_
        if same and arena[starts[slot - 1] : starts[slot]].tobytes() == text:
            return slot - 1
        at = (at + 1) & mask
    return count


def hash_text(text: bytes) -> int:
    """Mix the bytes of a text, eight at a time."""
    mixed = len(text)
    for at in range(0, len(text), 8):
        word = int.from_bytes(text[at : at + 8], "little")
        mixed = (mixed ^ word) * FACTOR & _LOW
        mixed ^= mixed >> 29
    return mixed * FACTOR & _LOW


def place(
    times: Whole,
    slots: Small,
    cells: Small,
    grid: tuple[int, int, int],
    ends: Whole,
    stride: int,
    watermark: int,
) -> int:
    """Find the cell of each row; return how many rows found one.

    `grid`: slices end at each multiple of a step after an offset, and, unless that is 0, a part of
    a step after it. `ends` has the end of each block's slice; rows of a new slice take the next
    free block. Stops where there is none, and returns `LATE` at a slice that ends by `watermark`.
    """
    step, offset, part = grid
    starts = (times - offset) // step * step + offset
    # Without a part no row is before it.
    of_rows = starts + np.where(times - starts < part, part, step)
    found, first, which = np.unique(of_rows, return_index=True, return_inverse=True)
    blocks = np.zeros(len(found), dtype=np.int64)
    for new in np.argsort(first).tolist():  # per slice
        end = int(found[new])
        if end <= watermark:
            return LATE
        holds = np.flatnonzero(ends == end)
        if not len(holds):
            holds = np.flatnonzero(ends == FREE)
            if not len(holds):
                reached = int(first[new])
                cells[:reached] = (blocks[which] * stride + slots)[:reached]
                return reached
        blocks[new] = holds[0]
        ends[holds[0]] = end
    cells[:] = blocks[which] * stride + slots
    return len(times)


def count(cells: Small, counts: Whole) -> None:
    """Add one per row."""
    np.add.at(counts, cells, 1)


def add_whole(cells: Small, values: Whole, sums: Whole) -> None:
    """Add integers, in 64 bits."""
    np.add.at(sums, cells, values)


def outside(bits: Whole, rows: Flags) -> int:
    """Mark the floats that `add_exact` cannot take, and return how many there are."""
    size = bits & (2**63 - 1)
    rows[:] = (size != 0) & ((size < LOWEST) | (size >= BEYOND))
    return int(np.count_nonzero(rows))


def add_exact(cells: Small, bits: Whole, limbs: Whole) -> None:
    """Add floats to four limbs each: see `engine.aggregates.exact`.

    They are multiples of 2^-96 below 2^64, as all are that are not `outside`. A limb grows by less
    than 2^40 per row, so carry before there are 2^23 rows.
    """
    size = bits & (2**63 - 1)
    place = np.where(size == 0, 0, (size >> 52) - SHIFT)
    mantissa = np.where(size == 0, 0, bits & (2**52 - 1) | 2**52) >> np.maximum(-place, 0)
    place = np.maximum(place, 0)
    limb = place // DIGIT_BITS
    shift = place - limb * DIGIT_BITS
    sign = np.where(bits < 0, -1, 1)
    upper = mantissa >> (DIGIT_BITS - shift)
    mask = 2**DIGIT_BITS - 1
    low = mantissa << shift & mask
    at = cells.astype(np.int64) * 4 + limb
    np.add.at(limbs, at, sign * low)
    np.add.at(limbs, at + 1, sign * (upper & mask))
    top = upper >> DIGIT_BITS
    high = top != 0
    np.add.at(limbs, at[high] + 2, (sign * top)[high])


def read_limbs(cells: Whole, limbs: Whole, found: Whole) -> None:
    """Copy the limbs of some cells to columns, low to high, and carry: all but the last are in
    [0, 2^40) then.
    """
    found[:] = carried(list(limbs.reshape(-1, 4)[cells].T))


def round_limbs(limbs: Whole, unit: int, sums: Floats) -> None:
    """The nearest floats of carried limbs, low to high, the last of which is less than 2^40 in
    size; `unit` is the exponent of the lowest one's unit.
    """
    sums[:] = rounded(list(limbs), unit)


def keep_whole(cells: Small, values: Whole, best: Whole, seen: Flags, largest: bool) -> None:
    """Keep the smallest or largest integer; `best` counts where it is `seen`."""
    (np.maximum if largest else np.minimum).at(best, cells, values)
    seen[cells] = True


def keep_float(cells: Small, values: Floats, best: Floats, seen: Flags, largest: bool) -> None:
    """Keep the smallest or largest float, none of which is NaN, and 0.0 for -0.0."""
    (np.maximum if largest else np.minimum).at(best, cells, values + 0.0)
    seen[cells] = True


def join_sessions(
    keys: Small,
    fragments: tuple[Whole, Whole, Whole],
    gap: int,
    heads: Small,
    nexts: Small,
    firsts: Whole,
    lasts: Whole,
    free: Small,
    at: Small,
    gone: Small,
    into: Small,
) -> tuple[int, int]:
    """Find the session of each fragment; return how many numbers of `free` it took, and how many
    sessions became part of others: `gone` of them `into` those.

    `fragments`: first and last time of each, and its mark: it joins sessions of its key that are
    less than a gap away and end after that. `heads` and `nexts` chain the sessions of a key.
    """
    taken, moved = 0, 0
    rows = zip(keys.tolist(), *(each.tolist() for each in fragments), strict=True)
    for row, (key, first, last, mark) in enumerate(rows):  # only until the compiled loop is ready
        found, before, session = -1, -1, int(heads[key])
        while session >= 0:
            begin, end, after = int(firsts[session]), int(lasts[session]), int(nexts[session])
            if end + gap > mark and first - end < gap and begin - last < gap:
                if found < 0:
                    found = before = session
                    firsts[found], lasts[found] = min(begin, first), max(end, last)
                else:
                    firsts[found] = min(int(firsts[found]), begin)
                    lasts[found] = max(int(lasts[found]), end)
                    nexts[before] = after
                    lasts[session] = FREE
                    gone[moved], into[moved] = session, found
                    moved += 1
            else:
                before = session
            session = after
        if found < 0:
            found = int(free[taken])
            taken += 1
            nexts[found], heads[key] = heads[key], found
            firsts[found], lasts[found] = first, last
        at[row] = found
    return taken, moved


def close_sessions(
    limit: int, owners: Small, heads: Small, nexts: Small, lasts: Whole, closed: Small
) -> tuple[int, int]:
    """Take the sessions out of their chains whose last time is up to a limit.

    Returns how many they are, and the smallest last time of the others.
    """
    over = np.flatnonzero((lasts > FREE) & (lasts <= limit))
    for session in over.tolist():  # only until the compiled loop is ready
        key, after = owners[session], nexts[session]
        at = int(heads[key])
        if at == session:
            heads[key] = after
        else:
            while nexts[at] != session:
                at = int(nexts[at])
            nexts[at] = after
    closed[: len(over)] = over
    return len(over), int(lasts.min(initial=NEVER, where=lasts > max(limit, FREE)))


def running_watermark(times: Whole, bound: int, watermark: int) -> tuple[int, bool]:
    """The watermark after some rows of a split, and whether any row was behind its own."""
    marks = np.maximum(np.maximum.accumulate(times) - bound, watermark)
    return int(marks[-1]), bool((times < marks).any())


def latest_rows(
    slots: Small,
    times: Whole,
    latest: Whole,
    fresh: tuple[Whole, Whole],
    row_times: Whole,
    ttl: int,
    found: npt.NDArray[np.uint32],
) -> None:
    """Find the last row of each slot up to a time: among its fresh ones, else the latest before.

    `fresh`: where the rows of a slot begin and end; they are sorted by time. A row whose `ttl` is
    over does not count, 0 for none; `found` is 0 where there is none.
    """
    begin, end = fresh[0][slots], fresh[1][slots]
    low, high = begin.copy(), end
    while (searching := low < high).any():
        middle = (low + high) // 2
        before = searching & (row_times[np.where(searching, middle, 0)] <= times)
        low, high = np.where(before, middle + 1, low), np.where(searching & ~before, middle, high)
    row = np.where(low > begin, low - 1, latest[slots])
    if ttl:
        row[row_times[row] <= times - ttl] = 0
    found[:] = row


def near(
    asked: tuple[Small, Whole],
    rows: tuple[Small, Whole],
    lower: int,
    upper: int,
    begins: Whole,
    ends: Whole,
) -> None:
    """Find where the rows lie that have a slot asked for, and lower <= time - time asked <= upper.

    Both are slots and times, in order of both.
    """
    (slots, times), (row_slots, row_times) = asked, rows
    distinct, ranks = np.unique(row_times, return_inverse=True)
    # Slot and place among the distinct times as one number: never too large, unlike the times.
    width = len(distinct) + 1
    places = row_slots.astype(np.int64) * width + ranks + 1
    base = slots.astype(np.int64) * width
    begins[:] = places.searchsorted(base + distinct.searchsorted(times + lower) + 1)
    last = base + distinct.searchsorted(times + upper, side="right")
    ends[:] = np.maximum(places.searchsorted(last, side="right"), begins)
