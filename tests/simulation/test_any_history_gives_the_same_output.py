"""The law: any kill, any restore, any parallelism, any speed: the same output."""

from __future__ import annotations

import pytest

from engine.testing.histories import INPUT, differs, main, sums_job, undisturbed
from engine.testing.simulation import Chaos, simulate

CRASHING = Chaos(crash=0.03, max_crashes=15, parallelisms=(3,))


def test_the_undisturbed_run_counts_every_row_once() -> None:
    sums, late = undisturbed()
    assert late.height > 3
    assert sums["n"].sum() + late.height == sum(rows.height for rows in INPUT.values())


@pytest.mark.parametrize("seed", range(100))
def test_any_history_gives_the_same_output(seed: int) -> None:
    history = simulate(sums_job, seed)
    assert differs(history) is None
    assert history.output.staged == {}


@pytest.mark.parametrize("seed", range(5))
def test_a_storm_of_crashes_gives_the_same_output(seed: int) -> None:
    history = simulate(sums_job, seed, CRASHING)
    assert history.crashes > 3
    assert differs(history) is None


def test_histories_are_rough_enough_to_mean_something() -> None:
    histories = [simulate(sums_job, seed) for seed in range(20)]
    assert sum(history.crashes for history in histories) > 10
    assert sum(history.stops for history in histories) > 3
    assert sum(history.failed for history in histories) > 10
    assert {2, 3} <= {p for history in histories for p in history.parallelisms}


def test_a_seed_gives_the_same_history_again() -> None:
    first, second = simulate(sums_job, 11), simulate(sums_job, 11)
    assert first.parallelisms == second.parallelisms
    assert (first.completed, first.failed) == (second.completed, second.failed)


def test_the_command_tells_what_it_has_seen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--histories", "2"]) == 0
    assert "2 histories with" in capsys.readouterr().out
