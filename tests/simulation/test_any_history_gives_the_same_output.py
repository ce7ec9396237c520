"""The law: any kill, any restore, any parallelism, any speed: the same output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from engine.checkpoint.coordination.failure import FailureReason
from engine.testing.crashes import Crash
from engine.testing.histories import main
from engine.testing.readings import INPUT
from engine.testing.scenarios import catalogue
from engine.testing.weather import Sky

SCENARIOS = catalogue()
REMINDERS, SUMS = SCENARIOS["reminders"], SCENARIOS["sums"]

HISTORIES = {
    "copies": 1_000,
    "reminders": 200,
    "sums": 170,
    "alignment": 150,
    "triggers": 130,
    "sessions": 110,
    "sliding": 70,
    "enrichment": 60,
    "dealing": 60,
    "joins": 50,
    "ties": 10,
}
"""The dearer, the fewer: the protocol is the same in all of them, and cheapest in the first. Dealt
to tests in lots, so that several processes can share them."""

LOT = 10


def lots(name: str) -> Sequence[tuple[str, int]]:
    """Each lot by its first seed."""
    return [(name, seed) for seed in range(0, HISTORIES[name], LOT)]


@pytest.mark.parametrize(("name", "first"), [lot for name in SCENARIOS for lot in lots(name)])
def test_any_history_gives_the_same_output(name: str, first: int) -> None:
    scenario = SCENARIOS[name]
    for seed in range(first, first + LOT):
        assert scenario.differs(scenario.history(seed)) is None


def test_there_are_thousands_of_histories() -> None:
    assert sum(HISTORIES.values()) >= 2_000


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_table_has_rows_to_compare(name: str) -> None:
    assert all(table.height > 1 for table in SCENARIOS[name].undisturbed)


def test_the_undisturbed_run_counts_every_row_once() -> None:
    sums, late = SUMS.undisturbed
    assert sums["n"].sum() + late.height == sum(rows.height for rows in INPUT.values())


def test_histories_are_rough_enough_to_mean_something() -> None:
    histories = [REMINDERS.history(seed) for seed in range(40)]
    crashes = sum((history.crashes for history in histories), Counter[Crash]())
    spells = sum((history.spells for history in histories), Counter[Sky]())
    failed = sum((history.failed for history in histories), Counter[FailureReason]())
    assert min(crashes[kind] for kind in Crash) > 5
    assert min(spells[kind] for kind in (Sky.FULL, Sky.SLOW)) > 5
    assert min(failed[reason] for reason in FailureReason if reason.counts) > 5
    assert sum(history.stops for history in histories) > 5
    assert sum(history.limits for history in histories) > 5
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
