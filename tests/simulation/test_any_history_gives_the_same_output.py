"""The law: any kill, any restore, any parallelism, any speed: the same output."""

from __future__ import annotations

import pytest

from engine.testing.histories import main
from engine.testing.readings import INPUT
from engine.testing.scenarios import catalogue
from engine.testing.simulation import Chaos, simulate

SCENARIOS = catalogue()
SUMS = SCENARIOS["sums"]

HISTORIES = 1_000
"""Over all scenarios; dealt to tests in lots, so that several processes can share them."""

LOT = 10
LOTS = -(-HISTORIES // (LOT * len(SCENARIOS)))

CHATTER = Chaos(lost=0.1, repeated=0.3, stop=0.03, storage_failure=0.2)

CRASHING = Chaos(crash=0.03, max_crashes=15, parallelisms=(3,))


@pytest.mark.parametrize("lot", range(LOTS))
@pytest.mark.parametrize("name", SCENARIOS)
def test_any_history_gives_the_same_output(name: str, lot: int) -> None:
    scenario = SCENARIOS[name]
    for seed in range(lot * LOT, (lot + 1) * LOT):
        assert scenario.differs(scenario.history(seed)) is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SCENARIOS)
def test_messages_that_are_lost_or_come_again_change_nothing(name: str, seed: int) -> None:
    scenario = SCENARIOS[name]
    assert scenario.differs(simulate(scenario.build, seed, CHATTER)) is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_storm_of_crashes_gives_the_same_output(name: str, seed: int) -> None:
    scenario = SCENARIOS[name]
    history = simulate(scenario.build, seed, CRASHING)
    assert history.crashes > 2
    assert scenario.differs(history) is None


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_table_has_rows_to_compare(name: str) -> None:
    assert all(table.height > 1 for table in SCENARIOS[name].undisturbed)


def test_the_undisturbed_run_counts_every_row_once() -> None:
    sums, late = SUMS.undisturbed
    assert sums["n"].sum() + late.height == sum(rows.height for rows in INPUT.values())


def test_histories_are_rough_enough_to_mean_something() -> None:
    histories = [SUMS.history(seed) for seed in range(20)]
    assert sum(history.crashes for history in histories) > 10
    assert sum(history.stops for history in histories) > 3
    assert sum(history.failed for history in histories) > 10
    assert {2, 3} <= {p for history in histories for p in history.parallelisms}


def test_a_seed_gives_the_same_history_again() -> None:
    first, second = SUMS.history(11), SUMS.history(11)
    assert first.parallelisms == second.parallelisms
    assert (first.completed, first.failed) == (second.completed, second.failed)


def test_a_broken_law_is_told_with_the_way_to_see_it_again() -> None:
    history = SUMS.history(4)
    history.output.committed.popitem()
    assert "(make sim JOB=sums SEED=4 N=1)" in str(SUMS.differs(history))


def test_the_command_tells_what_it_has_seen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--job", "sums", "--seed", "3", "--histories", "2"]) == 0
    assert "sums: 2 histories with" in capsys.readouterr().out
