"""Histories of the scenarios, from the shell: make sim JOB=sums SEED=42 N=1000.

Guarantee  every history gives the output of the undisturbed one; the first that does not is told
           with its seed, which gives the same history again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from engine.testing.scenario import Scenario
from engine.testing.scenarios import catalogue


def main(argv: Sequence[str] | None = None) -> int:
    """Run histories until one breaks the law, or all have held it."""
    known = catalogue()
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--job", choices=[*known, "all"], default="all", help="which scenario")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first history")
    parser.add_argument("--histories", type=int, default=100, help="how many of each, seed by seed")
    arguments = parser.parse_args(argv)
    chosen = known.values() if arguments.job == "all" else [known[arguments.job]]
    seeds = range(arguments.seed, arguments.seed + arguments.histories)
    failures = [failure for scenario in chosen if (failure := tell(scenario, seeds))]
    for failure in failures:
        print(failure)
    return 1 if failures else 0


def tell(scenario: Scenario, seeds: Sequence[int]) -> str | None:
    """Run some histories of a scenario, and say what they had; or the first that broke the law."""
    crashes = stops = snapshots = 0
    for seed in seeds:
        history = scenario.history(seed)
        failure = scenario.differs(history)
        if failure is not None:
            return failure
        crashes, stops = crashes + history.crashes.total(), stops + history.stops
        snapshots += history.completed
    print(
        f"{scenario.name}: {len(seeds)} histories with {crashes} crashes, {stops} stops and "
        f"{snapshots} snapshots: all gave the same output"
    )
    return None


if __name__ == "__main__":
    sys.exit(main())
