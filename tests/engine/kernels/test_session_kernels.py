"""The compiled loops of sessions do what the plain ones do."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import compiled, plain
from engine.kernels.plain import FREE, NEVER

KEYS, GAP, ROOM = 2, 5, 40
fragments = st.tuples(
    st.integers(0, KEYS - 1), st.integers(-9, 30), st.integers(0, 4), st.integers(-30, 30)
)
batches = st.lists(fragments, min_size=1, max_size=8)


def whole(values):
    return np.array(values, dtype=np.int64)


def play(kernels, script):
    """All that the loops return and write, step by step."""
    heads, nexts = np.full(KEYS, -1, np.int32), np.zeros(ROOM, np.int32)
    firsts, lasts = np.zeros(ROOM, np.int64), np.full(ROOM, FREE, np.int64)
    owners, free = np.zeros(ROOM, np.int32), np.arange(ROOM, dtype=np.int32)
    for step in script:
        at, gone, into = (np.zeros(ROOM, np.int32) for _ in range(3))
        if isinstance(step, int):
            count, earliest = kernels.close_sessions(step, owners, heads, nexts, lasts, gone)
            lasts[gone[:count]] = FREE
            assert earliest == min(lasts[lasts != FREE], default=NEVER)
        else:
            keys, first, length, marks = map(whole, zip(*step, strict=True))
            times, keys = (first, first + length, np.sort(marks)), keys.astype(np.int32)
            chains = heads, nexts, firsts, lasts
            taken, count = kernels.join_sessions(keys, times, GAP, *chains, free, at, gone, into)
            owners[at[: len(keys)]] = keys
            free = free[taken:]
            into = into[:count]
        free = np.concatenate([free, gone[:count]])
        yield [*(each.copy() for each in (at, into, gone[:count], free, heads, firsts, lasts))]


@given(st.lists(batches | st.integers(-9, 40), max_size=4))
@settings(max_examples=60, deadline=None)
def test_fragments_join_and_sessions_close_the_same_way(script):
    pairs = zip(play(plain, script), play(compiled, script), strict=True)
    for one, other in pairs:
        for expected, found in zip(one, other, strict=True):
            np.testing.assert_array_equal(expected, found)
