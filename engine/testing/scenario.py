"""A scenario: one small job and its tables, of which every history must give the same.

    undisturbed --> the tables that any other history is compared with
    seed --simulate--> a history --differs--> None, or one sentence that says how to see it again

Shapes   tables are sorted by all their columns, so only content is compared, to the last bit.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from engine.testing.blueprint import Blueprints, Build
from engine.testing.simulation import CALM, Chaos, History, simulate

MOODS = (
    Chaos(),
    Chaos(crash=0.15, max_crashes=6, stop=0, savepoint=0, spell=0, parallelisms=(2, 3)),
    Chaos(),
    Chaos(lost=0.05, repeated=0.3, stop=0.1),
    Chaos(),
    Chaos(storage_failure=0.02, spell=0.1, savepoint=0.1),
)
"""Histories in which everything happens, and some with much of one kind: crashes, messages that are
lost or come again, trouble with the storage."""


@dataclass(frozen=True)
class Scenario:
    """A job for the simulation. Its name is what `make sim JOB=…` takes."""

    name: str
    build: Build
    tables: tuple[str, ...]

    @functools.cached_property
    def undisturbed(self) -> Sequence[pl.DataFrame]:
        """What the job gives when nothing happens to it."""
        return self.outputs(self.history(seed=0, chaos=CALM))

    @functools.cached_property
    def blueprints(self) -> Blueprints:
        """The job, built once for all histories."""
        return Blueprints(self.build)

    def history(self, seed: int, chaos: Chaos | None = None) -> History:
        """The job's history of this seed; without a chaos, in one of several moods."""
        try:
            return simulate(self.blueprints, seed, chaos or MOODS[seed % len(MOODS)])
        except Exception as error:
            error.add_note(self._named(seed))
            raise

    def outputs(self, history: History) -> Sequence[pl.DataFrame]:
        """What a history gave, table by table."""
        return [history.output.table(name) for name in self.tables]

    def differs(self, history: History) -> str | None:
        """One sentence when a history broke the law."""
        if history.output.staged:
            return f"{self._named(history.seed)} left rows staged that nobody will commit"
        found = zip(self.tables, self.outputs(history), self.undisturbed, strict=True)
        for name, table, wanted in found:
            if not table.equals(wanted):
                return (
                    f"{self._named(history.seed)} gave another table {name!r}: {table.height} rows "
                    f"instead of {wanted.height}, or other values"
                )
        return None

    def _named(self, seed: int) -> str:
        return f"history {seed} of {self.name!r} (make sim JOB={self.name} SEED={seed} N=1)"
