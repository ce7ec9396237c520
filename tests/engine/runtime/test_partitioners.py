"""Which subtask gets a row."""

from __future__ import annotations

import polars as pl
import pytest

from engine.elements import KEY_GROUP
from engine.graph.jobgraph import Partitioning
from engine.keygroups import range_of
from engine.runtime.partitioners import partitioner

ROWS = pl.DataFrame(
    {"n": range(300), KEY_GROUP: [(n * 37) % 128 for n in range(300)]},
    schema={"n": pl.Int64, KEY_GROUP: pl.UInt16},
)


@pytest.mark.parametrize("targets", [1, 2, 3, 128])
def test_hash_gives_each_subtask_the_rows_of_its_key_groups_in_order(targets: int) -> None:
    dealt = dict(partitioner(Partitioning.HASH, targets, 128, start=0)(ROWS))
    assert sum(rows.height for rows in dealt.values()) == ROWS.height
    for target, rows in dealt.items():
        ours = range_of(target, targets, 128)
        assert rows["n"].is_sorted()
        assert all(group in ours for group in rows[KEY_GROUP])


def test_hash_sends_no_empty_frames() -> None:
    one_key = ROWS.filter(pl.col(KEY_GROUP) == 0)
    assert [target for target, _ in partitioner(Partitioning.HASH, 4, 128, start=0)(one_key)] == [0]


def test_rebalance_deals_whole_batches_in_turn_from_its_own_start() -> None:
    deal = partitioner(Partitioning.REBALANCE, 3, 128, start=2)
    assert [target for _ in range(4) for target, _ in deal(ROWS)] == [2, 0, 1, 2]


def test_broadcast_gives_every_subtask_every_row() -> None:
    dealt = list(partitioner(Partitioning.BROADCAST, 3, 128, start=0)(ROWS))
    assert [target for target, _ in dealt] == [0, 1, 2]
    assert all(rows.height == ROWS.height for _, rows in dealt)
