"""The catalogue of scenarios: every module of this package has one job, called `SCENARIO`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from engine.testing.scenario import Scenario


def catalogue() -> dict[str, Scenario]:
    """All scenarios by name; found by their modules, so there is no list to edit."""
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
    scenarios = [module.SCENARIO for module in modules]
    return {scenario.name: scenario for scenario in scenarios}
