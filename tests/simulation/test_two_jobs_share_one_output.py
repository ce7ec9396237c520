"""Two jobs over one input, one that writes up to T and one that writes from T on: together the same
as one job, whatever happens to either of them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import polars as pl
import pytest

from engine.graph.jobgraph import JobGraph
from engine.operators.span import moment_text
from engine.stream.recording import recording
from engine.testing.blueprint import Blueprints
from engine.testing.memory import OutputTables
from engine.testing.scenario import Scenario
from engine.testing.scenarios import catalogue
from engine.testing.simulation import CALM, simulate

SCENARIOS = catalogue()
NAMES = ("sums", "triggers", "copies", "joins")
CUTS_US = (1_999_999, 2_000_000, 2_650_000)


@functools.cache
def half(name: str, setting: str, cut: int) -> Blueprints:
    """The job with one of its ends at the cut."""

    def build(parallelism: int, output: OutputTables) -> JobGraph:
        with recording({f"headwater.event-time.{setting}": moment_text(cut)}):
            return SCENARIOS[name].build(parallelism, output)

    return Blueprints(build)


def tables(scenario: Scenario, old: OutputTables, new: OutputTables) -> Sequence[pl.DataFrame]:
    """What both wrote, table by table."""
    found = []
    for name in scenario.tables:
        parts = [part for part in (old.table(name), new.table(name)) if part.height]
        both = pl.concat(parts, how="diagonal")
        found.append(both.sort(both.columns, nulls_last=True))
    return found


@pytest.mark.parametrize("cut", CUTS_US)
@pytest.mark.parametrize("name", NAMES)
def test_each_row_is_written_by_exactly_one_of_both(name: str, cut: int) -> None:
    scenario = SCENARIOS[name]
    for seed in (cut % 7, 23):
        old = simulate(half(name, "until", cut), seed)
        new = simulate(half(name, "from", cut), seed + 100)
        found = tables(scenario, old.output, new.output)
        for table, whole in zip(found, scenario.undisturbed, strict=True):
            assert table.select(whole.columns).equals(whole), (name, cut, seed)


def test_a_window_and_its_corrections_are_written_by_one_of_both() -> None:
    old, new = (
        simulate(half("sliding", setting, 3_000_000), 5).output.table("found")
        for setting in ("until", "from")
    )
    assert old["event_time"].max() == 2_999_999
    assert old["row_watermark"].max() > 3_000_000
    assert new["event_time"].min() == 3_499_999


@pytest.mark.parametrize("name", ["sums", "triggers"])
def test_no_cut_leaves_a_side_without_rows(name: str) -> None:
    for setting in ("until", "from"):
        history = simulate(half(name, setting, 2_000_000), 0, CALM)
        assert all(history.output.table(table).height for table in SCENARIOS[name].tables)
