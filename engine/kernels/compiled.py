"""The loops of `plain`, compiled: one pass over the rows each, without the interpreter's lock.

Cost     importing this takes as long as Numba does: about 0.6 s with a warm cache.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar, cast

import numba
from numba import types

from engine.kernels.plain import (
    BEYOND,
    FACTOR,
    FREE,
    LATE,
    LOWEST,
    NEVER,
    SHIFT,
)
from engine.kernels.rounding import DIGIT_BITS, KEPT_BITS

Loop = TypeVar("Loop", bound=Callable[..., object])

_MASK = 2**DIGIT_BITS - 1
_FRACTION = 2**52 - 1
_HIDDEN = 2**52
_MIX = types.uint64(FACTOR)

_FLAGS = types.boolean[::1]
_COUNT = types.int64


def _rows(dtype: types.Type) -> types.Type:
    """An array that is only read, as those of frames must be."""
    return types.Array(dtype, 1, "C", readonly=True)


_WORDS, _WHOLE, _FLOATS, _SMALL, _BYTES = map(
    _rows, (types.uint64, types.int64, types.float64, types.int32, types.uint8)
)


def _compiled(returns: types.Type, *arguments: types.Type) -> Callable[[Loop], Loop]:
    """Compile for one signature when the module is imported, or find it in the cache."""

    def compile_(loop: Loop) -> Loop:
        signature = returns(*arguments)
        try:
            made = numba.njit(signature, nogil=True, cache=True)(loop)
        except RuntimeError:  # no folder for a cache can be written
            made = numba.njit(signature, nogil=True)(loop)
        return cast("Loop", made)

    return compile_


@_compiled(types.uint64, types.uint64)
def _mixed(word):
    return (word ^ (word >> types.uint64(32))) * _MIX


@_compiled(
    _COUNT, _WORDS, types.int32[::1], types.int32[::1], types.uint64[::1], _COUNT, types.int64[::1]
)
def intern_words(words, slots, marks, known, count, fresh):
    """Number 64-bit words by first appearance."""
    first = count
    mask = types.uint64(len(marks) - 1)
    for row in range(len(words)):
        word = words[row]
        at = (_mixed(word) >> types.uint64(32)) & mask
        while True:
            mark = marks[at]
            if mark == 0:
                marks[at] = count + 1
                known[count] = word
                fresh[count - first] = row
                slots[row] = count
                count += 1
                break
            if known[mark - 1] == word:
                slots[row] = mark - 1
                break
            at = (at + types.uint64(1)) & mask
    return count


@_compiled(types.void, _WORDS, _COUNT, types.int32[::1])
def index(hashes, count, marks):
    """Fill an empty table with the slots of some hashes."""
    mask = types.uint64(len(marks) - 1)
    for slot in range(count):
        at = (hashes[slot] >> types.uint64(32)) & mask
        while marks[at] != 0:
            at = (at + types.uint64(1)) & mask
        marks[at] = slot + 1


@_compiled(types.uint64, _BYTES, _COUNT, _COUNT)
def _hashed(data, start, stop):
    mixed = types.uint64(stop - start)
    at = start
    while at < stop:
        word = types.uint64(0)
        if stop - at >= 8:
            for byte in range(8):  # the compiler makes one load of these
                word |= types.uint64(data[at + byte]) << types.uint64(8 * byte)
        else:
            for byte in range(stop - at):
                word |= types.uint64(data[at + byte]) << types.uint64(8 * byte)
        mixed = (mixed ^ word) * _MIX
        mixed ^= mixed >> types.uint64(29)
        at += 8
    return mixed * _MIX


@_compiled(types.boolean, _BYTES, _COUNT, _BYTES, _COUNT, _COUNT)
def _equal(data, start, arena, from_, length):
    for byte in range(length):  # noqa: SIM110 compiled it is faster
        if data[start + byte] != arena[from_ + byte]:
            return False
    return True


@_compiled(
    _COUNT,
    _WHOLE,
    _BYTES,
    types.int32[::1],
    types.int32[::1],
    types.uint64[::1],
    types.int64[::1],
    types.uint8[::1],
    _COUNT,
    types.int64[::1],
)
def intern_text(offsets, data, slots, marks, hashes, starts, arena, count, fresh):
    """Number texts by first appearance."""
    first = count
    mask = types.uint64(len(marks) - 1)
    for row in range(len(slots)):
        start, stop = offsets[row], offsets[row + 1]
        hash_ = _hashed(data, start, stop)
        at = (hash_ >> types.uint64(32)) & mask
        while True:
            slot = marks[at] - 1
            if slot < 0:
                marks[at] = count + 1
                hashes[count] = hash_
                to = starts[count]
                for byte in range(stop - start):
                    arena[to + byte] = data[start + byte]
                starts[count + 1] = to + stop - start
                fresh[count - first] = row
                slots[row] = count
                count += 1
                break
            from_ = starts[slot]
            if (
                hashes[slot] == hash_
                and starts[slot + 1] - from_ == stop - start
                and _equal(data, start, arena, from_, stop - start)
            ):
                slots[row] = slot
                break
            at = (at + types.uint64(1)) & mask
    return count


@_compiled(
    _COUNT,
    _WHOLE,
    _SMALL,
    types.int32[::1],
    types.UniTuple(types.int64, 3),
    types.int64[::1],
    _COUNT,
    _COUNT,
)
def place(times, slots, cells, grid, ends, stride, watermark):
    """Find the cell of each row; remembers the last slice, so that few rows divide."""
    step, offset, part = grid
    start, length, base = 0, types.uint64(0), 0
    for row in range(len(times)):
        # Below the start this wraps round, and is beyond any length.
        if types.uint64(times[row] - start) >= length:
            time = times[row]
            start = (time - offset) // step * step + offset
            end = start + step
            if part:
                if time - start < part:
                    end = start + part
                else:
                    start += part
            length = types.uint64(end - start)
            if end <= watermark:
                return LATE
            block = -1
            for taken in range(len(ends)):
                if ends[taken] == end:
                    block = taken
                    break
                if block < 0 and ends[taken] == FREE:
                    block = taken
            if block < 0:
                return row
            ends[block] = end
            base = block * stride
        cells[row] = base + slots[row]
    return len(times)


@_compiled(types.void, _SMALL, types.int64[::1])
def count(cells, counts):
    """Add one per row."""
    for row in range(len(cells)):
        counts[cells[row]] += 1


@_compiled(types.void, _SMALL, _WHOLE, types.int64[::1])
def add_whole(cells, values, sums):
    """Add integers."""
    for row in range(len(cells)):
        sums[cells[row]] += values[row]


@_compiled(_COUNT, _WHOLE, _FLAGS)
def outside(bits, rows):
    """Mark the floats that `add_exact` cannot take."""
    found = 0
    for row in range(len(bits)):
        size = bits[row] & 0x7FFFFFFFFFFFFFFF
        odd = (size != 0) & ((size < LOWEST) | (size >= BEYOND))
        rows[row] = odd
        found += odd
    return found


@_compiled(types.void, _SMALL, _WHOLE, types.int64[::1])
def add_exact(cells, bits, limbs):
    """Add floats to four limbs each."""
    for row in range(len(cells)):
        size = bits[row] & 0x7FFFFFFFFFFFFFFF
        if size == 0:
            continue
        place = (size >> 52) - SHIFT
        mantissa = (size & _FRACTION) | _HIDDEN
        if place < 0:
            mantissa >>= -place
            place = types.int64(0)
        limb = types.int64(place >= DIGIT_BITS) + types.int64(place >= 2 * DIGIT_BITS)
        shift = place - limb * DIGIT_BITS
        upper = mantissa >> (DIGIT_BITS - shift)
        sign = bits[row] >> 63  # -1 where negative: x ^ -1 - -1 is -x
        at = types.int64(cells[row]) * 4 + limb
        limbs[at] += (((mantissa << shift) & _MASK) ^ sign) - sign
        limbs[at + 1] += ((upper & _MASK) ^ sign) - sign
        top = upper >> DIGIT_BITS
        if top != 0:
            limbs[at + 2] += (top ^ sign) - sign


@_compiled(types.void, _WHOLE, _WHOLE, types.int64[:, ::1])
def read_limbs(cells, limbs, found):
    """Copy the limbs of some cells to columns, and carry."""
    for row in range(len(cells)):
        at = cells[row] * 4
        over = types.int64(0)
        for limb in range(3):
            total = limbs[at + limb] + over
            found[limb, row] = total & _MASK
            over = total >> DIGIT_BITS
        found[3, row] = limbs[at + 3] + over


@_compiled(types.void, types.Array(types.int64, 2, "C", readonly=True), _COUNT, types.float64[::1])
def round_limbs(limbs, unit, sums):
    """The nearest floats of carried limbs: 62 leading bits, the rest as one sticky bit."""
    for row in range(len(sums)):
        negative = limbs[3, row] < 0
        digit0, digit1, digit2, digit3 = limbs[0, row], limbs[1, row], limbs[2, row], limbs[3, row]
        if negative:
            digit0 = -digit0
            digit1 = (digit0 >> DIGIT_BITS) - digit1
            digit2 = (digit1 >> DIGIT_BITS) - digit2
            digit3 = (digit2 >> DIGIT_BITS) - digit3
            digit0, digit1, digit2 = digit0 & _MASK, digit1 & _MASK, digit2 & _MASK
        exponent = unit + 3 * DIGIT_BITS
        for _ in range(3):
            if digit3 == 0:
                digit3, digit2, digit1, digit0 = digit2, digit1, digit0, types.int64(0)
                exponent -= DIGIT_BITS
        bits = 0
        while digit3 >> bits != 0:
            bits += 1
        wanted = KEPT_BITS - bits
        if wanted <= DIGIT_BITS:
            cut = DIGIT_BITS - wanted
            whole = digit2 >> cut
            left = (digit2 & ((types.int64(1) << cut) - 1)) | digit1 | digit0
        else:
            cut = 2 * DIGIT_BITS - wanted
            whole = (digit2 << (wanted - DIGIT_BITS)) | (digit1 >> cut)
            left = (digit1 & ((types.int64(1) << cut) - 1)) | digit0
        mantissa = (digit3 << wanted) | whole | types.int64(left != 0)
        found = math.ldexp(float(mantissa), exponent - wanted)
        sums[row] = -found if negative else found


@_compiled(types.void, _SMALL, _WHOLE, types.int64[::1], _FLAGS, types.boolean)
def keep_whole(cells, values, best, seen, largest):
    """Keep the smallest or largest integer."""
    for row in range(len(cells)):
        cell = cells[row]
        if (values[row] > best[cell]) == largest:
            best[cell] = values[row]
        seen[cell] = True


@_compiled(types.void, _SMALL, _FLOATS, types.float64[::1], _FLAGS, types.boolean)
def keep_float(cells, values, best, seen, largest):
    """Keep the smallest or largest float."""
    for row in range(len(cells)):
        cell = cells[row]
        if (values[row] > best[cell]) == largest:
            best[cell] = values[row] + 0.0
        seen[cell] = True


@_compiled(
    types.UniTuple(types.int64, 2),
    _SMALL,
    types.UniTuple(_WHOLE, 3),
    _COUNT,
    types.int32[::1],
    types.int32[::1],
    types.int64[::1],
    types.int64[::1],
    types.int32[::1],
    types.int32[::1],
    types.int32[::1],
    types.int32[::1],
)
def join_sessions(keys, fragments, gap, heads, nexts, firsts, lasts, free, at, gone, into):
    """Find the session of each fragment, and join those that it links."""
    fragment_firsts, fragment_lasts, marks = fragments
    taken, moved = 0, 0
    for row in range(len(keys)):
        first, last, mark = fragment_firsts[row], fragment_lasts[row], marks[row]
        found, before, session = -1, -1, heads[keys[row]]
        while session >= 0:
            begin, end, after = firsts[session], lasts[session], nexts[session]
            if end + gap > mark and first - end < gap and begin - last < gap:
                if found < 0:
                    found = before = session
                    firsts[found], lasts[found] = min(begin, first), max(end, last)
                else:
                    firsts[found] = min(firsts[found], begin)
                    lasts[found] = max(lasts[found], end)
                    nexts[before] = after
                    lasts[session] = FREE
                    gone[moved], into[moved] = session, found
                    moved += 1
            else:
                before = session
            session = after
        if found < 0:
            found = free[taken]
            taken += 1
            nexts[found] = heads[keys[row]]
            heads[keys[row]] = found
            firsts[found], lasts[found] = first, last
        at[row] = found
    return taken, moved


@_compiled(
    types.UniTuple(types.int64, 2),
    _COUNT,
    types.int32[::1],
    types.int32[::1],
    types.int32[::1],
    types.int64[::1],
    types.int32[::1],
)
def close_sessions(limit, owners, heads, nexts, lasts, closed):
    """Take the sessions out of their chains whose last time is up to a limit."""
    count, earliest = 0, types.int64(NEVER)
    for session in range(len(lasts)):
        if lasts[session] > limit:
            earliest = min(earliest, lasts[session])
            continue
        if lasts[session] == FREE:
            continue
        at = heads[owners[session]]
        if at == session:
            heads[owners[session]] = nexts[session]
        else:
            while nexts[at] != session:
                at = nexts[at]
            nexts[at] = nexts[session]
        closed[count] = session
        count += 1
    return count, earliest


@_compiled(types.Tuple((types.int64, types.boolean)), _WHOLE, _COUNT, _COUNT)
def running_watermark(times, bound, watermark):
    """The watermark after some rows, and whether any was behind it."""
    newest = watermark + bound
    behind = False
    for row in range(len(times)):
        newest = max(newest, times[row])
        behind |= times[row] < newest - bound
    return newest - bound, behind


@_compiled(
    types.void,
    _SMALL,
    _WHOLE,
    _WHOLE,
    types.UniTuple(_WHOLE, 2),
    _WHOLE,
    _COUNT,
    types.uint32[::1],
)
def latest_rows(slots, times, latest, fresh, row_times, ttl, found):
    """Find the last row of each slot up to a time."""
    begins, ends = fresh
    for row in range(len(slots)):
        slot, time = slots[row], times[row]
        begin, high = begins[slot], ends[slot]
        low = begin
        while low < high:
            middle = (low + high) // 2
            if row_times[middle] <= time:
                low = middle + 1
            else:
                high = middle
        last = low - 1 if low > begin else latest[slot]
        found[row] = 0 if ttl and row_times[last] <= time - ttl else last


@_compiled(types.boolean, _SMALL, _WHOLE, _COUNT, types.int32, types.int64)
def _is_before(slots, times, row, slot, time):
    return slots[row] < slot or (slots[row] == slot and times[row] < time)


@_compiled(_COUNT, _SMALL, _WHOLE, _COUNT, types.int32, types.int64)
def _first_from(slots, times, at, slot, time):
    """The first row from `at` on that is not before a slot and time: in growing steps, since it is
    near as a rule, and then by halves.
    """
    step = 1
    while at + step <= len(slots) and _is_before(slots, times, at + step - 1, slot, time):
        at += step
        step *= 2
    end = min(at + step, len(slots))
    while at < end:
        middle = (at + end) // 2
        if _is_before(slots, times, middle, slot, time):
            at = middle + 1
        else:
            end = middle
    return at


_SIDE = types.Tuple((_SMALL, _WHOLE))


@_compiled(types.void, _SIDE, _SIDE, _COUNT, _COUNT, types.int64[::1], types.int64[::1])
def near(asked, rows, lower, upper, begins, ends):
    """Find where the rows near each slot and time lie."""
    slots, times = asked
    row_slots, row_times = rows
    begin = end = 0
    for row in range(len(slots)):
        slot, time = slots[row], times[row]
        begin = _first_from(row_slots, row_times, begin, slot, time + lower)
        end = _first_from(row_slots, row_times, max(begin, end), slot, time + upper + 1)
        begins[row], ends[row] = begin, end
