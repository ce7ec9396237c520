"""Operators emit what they hold back whenever live state is asked for: no output changes by it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import polars as pl
import pytest

from engine.testing.attempt import Attempt
from engine.testing.scenario import Scenario
from engine.testing.scenarios import catalogue
from engine.testing.weather import Weather
from engine.testing.world import World

STEPS = 200_000
PARALLELISM = 2
SCENARIOS = catalogue()


def questioned(scenario: Scenario, seed: int) -> Sequence[pl.DataFrame]:
    """The tables of a job that is asked something every few steps."""
    random = Random(seed)
    world = World(random, Weather(random))
    attempt = Attempt(scenario.blueprints.at(PARALLELISM), "asked", world)
    places = list(attempt._places.values())
    for _ in range(STEPS):
        if attempt.done:
            return [world.output.table(name) for name in scenario.tables]
        if random.random() < 0.2:
            place = random.choice(places)
            place.task.flush()
            place._settle()
        steps = attempt.steps()
        if steps and random.random() > 0.25 / len(places):
            random.choice(steps).do()
        else:
            attempt.tick(random.randrange(100_000))
    raise AssertionError("the job does not end")


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_job_that_is_asked_all_the_time_gives_the_same(name: str) -> None:
    scenario = SCENARIOS[name]
    for table, wanted in zip(questioned(scenario, seed=1), scenario.undisturbed, strict=True):
        assert table.equals(wanted)
