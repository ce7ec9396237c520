"""The compiled loops do what the plain ones do."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.aggregates.exact import carry, no_rests, split
from engine.kernels import compiled, plain
from engine.kernels.plain import FREE, LATE

CELLS = 5
whole = st.integers(-(2**40), 2**40)
words = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3), max_size=20)
times = st.lists(st.integers(-30, 30), max_size=20)
floats = st.floats() | st.floats(-1.0, 1.0) | st.integers(-(2**70), 2**70).map(float)
few = settings(max_examples=60, deadline=None)


def same(call):
    """What a loop returns and writes, which is the same both ways."""
    first, second = call(plain), call(compiled)
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    return first


def placed(rows):
    """Rows at some cells."""
    return np.arange(len(rows), dtype=np.int32) % CELLS


@given(st.lists(words, max_size=3))
@few
def test_words_are_numbered_by_first_appearance(batches):
    def number(kernels):
        marks, known = np.zeros(256, dtype=np.int32), np.zeros(128, dtype=np.uint64)
        count, found = 0, []
        for batch in batches:
            slots, fresh = np.zeros(len(batch), np.int32), np.zeros(len(batch), np.int64)
            rows = np.array(batch, dtype=np.uint64)
            count, before = kernels.intern_words(rows, slots, marks, known, count, fresh), count
            found += [slots, fresh[: count - before]]
        return [*found, known[:count], np.count_nonzero(marks)]

    numbers = {}
    expected = [numbers.setdefault(word, len(numbers)) for batch in batches for word in batch]
    assert np.concatenate([[], *same(number)[:-2:2]]).tolist() == expected


@given(st.lists(st.lists(st.binary(max_size=20) | st.sampled_from([b"", b"a", b"ab"]), max_size=9)))
@few
def test_texts_are_numbered_by_first_appearance(batches):
    total = sum(map(len, batches))

    def number(kernels):
        marks, hashes = np.zeros(2 * total + 2, dtype=np.int32), np.zeros(total, dtype=np.uint64)
        marks = np.zeros(1 << (2 * total).bit_length(), dtype=np.int32)
        starts, arena = np.zeros(total + 1, np.int64), np.zeros(20 * total, dtype=np.uint8)
        count, found = 0, []
        for batch in batches:
            slots, fresh = np.zeros(len(batch), np.int32), np.zeros(len(batch), np.int64)
            offsets = np.array([0, *np.cumsum([len(text) for text in batch])], dtype=np.int64)
            data = np.frombuffer(b"".join(batch), dtype=np.uint8)
            args = offsets, data, slots, marks, hashes, starts, arena
            count, before = kernels.intern_text(*args, count, fresh), count
            found += [slots, fresh[: count - before]]
        return [*found, hashes[:count], starts[: count + 1], arena[: starts[count]]]

    numbers = {}
    expected = [numbers.setdefault(text, len(numbers)) for batch in batches for text in batch]
    assert np.concatenate([[], *same(number)[:-3:2]]).tolist() == expected


@given(times, st.sampled_from([(4, 1, 0), (4, 0, 3), (1, 0, 0)]), st.integers(-40, 5))
@few
def test_rows_find_the_block_of_their_slice(rows, grid, watermark):
    def place(kernels):
        ends = np.array([FREE, 8, FREE, FREE], dtype=np.int64)
        cells, slots = np.zeros(len(rows), np.int32), placed(rows)
        moments = np.array(rows, dtype=np.int64)
        count = kernels.place(moments, slots, cells, grid, ends, 100, watermark)
        return [count, cells[: max(count, 0)], ends]

    count, cells, ends = same(place)
    if count != LATE:
        step, offset, part = grid
        for time, cell in zip(rows, cells, strict=False):
            end = int(ends[cell // 100])
            assert watermark < end
            assert (end - offset) % step in (0, part)
            assert 0 < end - time <= step
        assert count == len(rows) or FREE not in ends


@given(st.lists(whole, max_size=20), st.booleans())
@few
def test_integers_are_counted_added_and_compared(rows, largest):
    def fill(kernels):
        counts, sums, best = np.zeros((3, CELLS), dtype=np.int64)
        seen = np.zeros(CELLS, dtype=np.bool_)
        values = np.array(rows, dtype=np.int64)
        kernels.count(placed(rows), counts)
        kernels.add_whole(placed(rows), values, sums)
        kernels.keep_whole(placed(rows), values, best, seen, largest)
        return [counts, sums, best, seen]

    counts, sums, _, seen = same(fill)
    assert sums.tolist() == [sum(rows[cell::CELLS]) for cell in range(CELLS)]
    assert counts.tolist() == [len(rows[cell::CELLS]) for cell in range(CELLS)]
    assert seen.tolist() == [bool(rows[cell::CELLS]) for cell in range(CELLS)]


@given(st.lists(floats, max_size=20))
@few
def test_floats_are_added_to_the_limbs_that_splitting_them_gives(rows):
    values = np.array(rows, dtype=np.float64)
    bits = values.view(np.int64)

    def add(kernels):
        odd = np.zeros(len(rows), dtype=np.bool_)
        count = kernels.outside(bits, odd)
        limbs = np.zeros(4 * CELLS, dtype=np.int64)
        kernels.add_exact(placed(rows)[~odd], bits[~odd], limbs)
        return [count, odd, limbs]

    _, odd, limbs = same(add)
    assert odd[~np.isfinite(values)].all()
    assert not odd[(np.abs(values) < 2.0**64) & (np.abs(values) >= 2.0**-43)].any()
    for cell in range(CELLS):
        kept = pl.Series(values[cell::CELLS][~odd[cell::CELLS]], dtype=pl.Float64)
        expected = carry([pl.Series([limb.sum()]) for limb in split(kept)[:4]], no_rests(1))
        mine = [pl.Series([limb]) for limb in limbs[4 * cell : 4 * cell + 4]]
        assert [part.to_list() for part in carry(mine, no_rests(1))] == [
            part.to_list() for part in expected
        ]


digits = st.integers(0, 2**40 - 1) | st.sampled_from([0, 1, 2**40 - 1, 2**39, 2**39 + 1])
sums = st.tuples(digits, digits, digits, st.integers(-(2**40) + 1, 2**40 - 1) | digits)


@given(st.lists(sums | st.floats(-1e9, 1e9), max_size=20))
@few
def test_limbs_are_rounded_to_the_nearest_float(rows):
    table = [row if isinstance(row, tuple) else limbs_of(row) for row in rows]
    limbs = np.array(table, dtype=np.int64).reshape(-1, 4).T.copy()

    def round_(kernels):
        rounded = np.empty(len(rows))
        kernels.round_limbs(limbs, -96, rounded)
        return [rounded, np.signbit(rounded)]

    rounded, _ = same(round_)
    whole = [sum(digit << 40 * place for place, digit in enumerate(row)) for row in table]
    assert rounded.tolist() == [number / 2**96 for number in whole]


def limbs_of(value):
    """The limbs of one float."""
    *limbs, _, _ = split(pl.Series([value]))
    return [part[0] for part in carry(limbs, no_rests(1))[:4]]


@given(st.lists(st.integers(-(2**62), 2**62), min_size=4 * CELLS, max_size=4 * CELLS))
@few
def test_limbs_are_read_in_their_lasting_form(rows):
    cells, limbs = np.array([3, 0], dtype=np.int64), np.array(rows, dtype=np.int64)

    def read(kernels):
        found = np.zeros((4, 2), dtype=np.int64)
        kernels.read_limbs(cells, limbs, found)
        return [found]

    [found] = same(read)
    assert ((found[:3] >= 0) & (found[:3] < 2**40)).all()
    expected = sum(digit << 40 * place for place, digit in enumerate(rows[12:16]))
    assert sum(int(digit) << 40 * place for place, digit in enumerate(found[:, 0])) == expected


@given(st.lists(st.floats(allow_nan=False), max_size=20), st.booleans())
@few
def test_floats_are_compared_and_no_zero_has_a_sign(rows, largest):
    def keep(kernels):
        best = np.full(CELLS, -math.inf if largest else math.inf)
        seen = np.zeros(CELLS, dtype=np.bool_)
        kernels.keep_float(placed(rows), np.array(rows, dtype=np.float64), best, seen, largest)
        return [best, np.signbit(best), seen]

    best, negative, _ = same(keep)
    assert not negative[best == 0.0].any()
    for cell in range(CELLS):
        if rows[cell::CELLS]:
            assert best[cell] == (max if largest else min)(rows[cell::CELLS])


@given(times.filter(len), st.integers(0, 20), st.none() | st.integers(-10, 40))
@few
def test_the_watermark_runs_behind_the_latest_row(rows, bound, before):
    start = -(2**63) if before is None else before
    moments = np.array(rows, dtype=np.int64)
    watermark, behind = same(lambda kernels: kernels.running_watermark(moments, bound, start))
    assert watermark == max(start, max(rows) - bound)
    marks = [max(start, max(rows[: row + 1]) - bound) for row in range(len(rows))]
    assert behind == any(time < mark for time, mark in zip(rows, marks, strict=True))


@pytest.mark.parametrize("kernels", [plain, compiled], ids=["plain", "compiled"])
def test_a_rebuilt_table_finds_every_slot_again(kernels):
    rows = np.arange(50, dtype=np.uint64) * 7
    known, fresh = np.zeros(100, dtype=np.uint64), np.zeros(50, dtype=np.int64)
    slots = np.zeros(50, dtype=np.int32)
    count = kernels.intern_words(rows, slots, np.zeros(256, np.int32), known, 0, fresh)
    marks = np.zeros(512, dtype=np.int32)
    mixed = (known ^ known >> np.uint64(32)) * np.uint64(plain.FACTOR)
    kernels.index(mixed, count, marks)
    assert kernels.intern_words(rows[::-1].copy(), slots, marks, known, count, fresh) == count
    assert slots.tolist() == list(range(50))[::-1]
