"""A row's key group depends on its key only, whether it is looked up or hashed."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.elements import KEY_GROUP
from engine.kernels import compiled, plain
from engine.keygroups import key_groups
from engine.operators.columns import key_by
from engine.operators.columns.key_by import KeyBy
from engine.testing.harness import OperatorHarness

KEYS = {"id": pl.Int32(), "name": pl.String()}
rows = st.tuples(st.integers(-3, 3), st.sampled_from(["", "a", "東京"]))
batches = st.lists(st.lists(rows, min_size=1, max_size=9), max_size=5)


@pytest.mark.parametrize("kernels", [plain, compiled], ids=["plain", "compiled"])
@pytest.mark.parametrize("keys", [["id"], ["name"], ["name", "id"]])
@given(batches=batches)
@settings(max_examples=15, deadline=None)
def test_key_groups_are_those_of_the_keys(keys, kernels, batches):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_by, "_MOST_KEYS", 5)
        patch.setattr(key_by, "active", lambda: kernels)
        harness = OperatorHarness(KeyBy(keys), max_parallelism=12)
        for batch in batches:
            frame = pl.DataFrame(batch, schema=KEYS, orient="row")
            harness.push(frame)
            wanted = key_groups(frame, keys, 12)
            assert harness.frames["main"][-1].equals(frame.with_columns(wanted))


def test_a_stream_may_be_keyed_anew():
    harness = OperatorHarness(KeyBy(["name"]), max_parallelism=12)
    frame = pl.DataFrame({KEY_GROUP: pl.Series([9], dtype=pl.UInt16), "name": ["a"]})
    harness._operator.on_batch(frame, 0, harness._ctx)
    [keyed] = harness.frames["main"]
    assert keyed[KEY_GROUP].to_list() == key_groups(frame, ["name"], 12).to_list()
