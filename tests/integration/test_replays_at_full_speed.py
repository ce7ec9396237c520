"""A day of six splits replayed from a savepoint, with one of them silent and one far fuller."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.replay import Months
from benchmarks.replay_parts import wrong
from engine.rest.client import EngineClient
from engine.testing.cluster import LocalCluster

pytestmark = pytest.mark.integration


def test_a_replay_in_which_a_worker_dies_writes_what_the_live_run_wrote(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    with EngineClient(cluster.url) as client:
        months = Months(cluster, client, tmp_path, days=1, slots=1)
        live, savepoint = months.live()
        replay = months.replay(savepoint, "r-1", kills=1)
    assert replay.kills == 1
    assert replay.table.height < live.table.height, "it began at the savepoint"
    assert wrong(live, replay, months.readings) is None
