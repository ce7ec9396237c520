"""Snapshots that engines of old have written: read, verified, and gone on from."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from engine.checkpoint.format.manifest import FORMAT_VERSION
from engine.checkpoint.inspection.reading import open_snapshot
from engine.checkpoint.inspection.verification import verify
from engine.state.contract import StateKind
from engine.testing.memory import OutputTables
from engine.testing.simulation import CALM, simulate
from fixtures.every_kind_job import TABLES, every_kind_job
from golden_snapshots import Run, formats, kinds, snapshots

SNAPSHOTS = [snapshot for folder in formats() for snapshot in snapshots(folder)]

snapshots_of_old = pytest.mark.parametrize(
    "snapshot", SNAPSHOTS, ids=lambda path: "-".join(path.parts[-3:])
)


def rows_of(output: OutputTables) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of every table, each with how often it is there."""
    return {name: Counter(output.table(name).rows()) for name in TABLES}


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Counter[tuple[Any, ...]]]:
    return rows_of(simulate(every_kind_job, seed=0, chaos=CALM).output)


def test_every_format_has_its_folder() -> None:
    names = [folder.name for folder in formats()]
    assert names == [f"format-{version}" for version in range(1, FORMAT_VERSION + 1)], (
        "a new format needs a folder: run make golden once, and commit it"
    )


@snapshots_of_old
def test_a_snapshot_of_old_is_whole_and_its_rows_are_read(snapshot: Path) -> None:
    opened = open_snapshot(str(snapshot))
    assert f"format-{opened.manifest.format_version}" in snapshot.parts
    assert verify(opened).is_whole
    assert kinds(snapshot) == set(StateKind)
    for _, state in opened.states():
        if state.rows:
            assert opened.collect(opened.scan(state).select(pl.len())).item() > 0


@pytest.mark.parametrize("parallelism", [1, 2])
@snapshots_of_old
def test_a_job_goes_on_from_a_snapshot_of_old(
    snapshot: Path, parallelism: int, undisturbed: dict[str, Counter[tuple[Any, ...]]]
) -> None:
    run = Run(parallelism, snapshot)
    run.until(lambda: run.attempt.done)
    folder = next(parent for parent in snapshot.parents if parent.name.startswith("format-"))
    before = json.loads((folder / "rows.json").read_text())[snapshot.name]
    for name, rows in rows_of(run.output).items():
        assert rows.total()
        assert rows <= undisturbed[name]
        assert rows.total() + before[name] == undisturbed[name].total()
