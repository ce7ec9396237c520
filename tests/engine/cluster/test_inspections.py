"""Looks into snapshots, each in a process with limits of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.checkpoint.inspection.difference_report import Difference
from engine.checkpoint.inspection.questions import StateQuestion
from engine.checkpoint.inspection.verification import Verification
from engine.cluster.answers.inspections import Inspections, Limits
from engine.cluster.answers.places import Places
from engine.errors import RestoreError
from engine.rest.errors import Forbidden, NotFound, TooCostly, Unavailable
from engine.rest.model.snapshots import InspectionStatus
from snapshot_folders import counts, save

TRIGGER = "deadbeefdeadbeefdeadbeefdeadbeef"


def inspections(root: Path, limits: Limits = Limits()) -> Inspections:  # noqa: B008
    return Inspections(Places(lambda: [str(root)], lambda: ()), limits)


def asked(sql: str | None = None) -> StateQuestion:
    return StateQuestion("count", "counts", sql=sql, limit=10)


async def ended(poll: Callable[[], InspectionStatus]) -> InspectionStatus:
    while not (status := poll()).finished:
        await asyncio.sleep(0.02)
    return status


async def test_rows_are_read_and_a_query_reaches_nothing_else(tmp_path: Path) -> None:
    path = save(tmp_path / "s", counts(("ann", 1), ("bob", 2)))
    look = inspections(tmp_path)
    found = await look.read(path, asked("select k, n * 2 as m from state where n > 1"))
    assert found.columns == {"k": "String", "m": "Int64"}
    assert found.rows == [["bob", 4]]
    # Split, so that only the system stands in its way: Polars takes what lies between as nothing.
    outside = f"select * from read_csv/**/('{__file__}')"
    with pytest.raises(RestoreError, match=r"query cannot be run: Too many open files"):
        await look.read(path, asked(outside))


async def test_a_verification_and_a_comparison_are_polled(tmp_path: Path) -> None:
    left = save(tmp_path / "l", counts(("ann", 1), ("bob", 2)))
    right = save(tmp_path / "r", counts(("ann", 1), ("bob", 3)))
    look = inspections(tmp_path)
    verifying = look.start("verification", [left], None)
    comparing = look.start("comparison", [left, right], TRIGGER, examples=1)
    assert look.start("comparison", [left, right], TRIGGER, examples=1) == comparing == TRIGGER
    assert not look.status("verification", verifying).finished

    whole = await ended(lambda: look.status("verification", verifying))
    assert whole.result is not None
    assert Verification.from_json(whole.result).is_whole
    assert whole.done == whole.total > 0
    compared = await ended(lambda: look.status("comparison", comparing))
    assert compared.result is not None
    (state,) = Difference.from_json(compared.result).states
    assert (state.equal, state.changed) == (1, 1)
    assert state.examples == ({"k": "bob", "left": {"n": 2}, "right": {"n": 3}},)
    with pytest.raises(NotFound):
        look.status("verification", comparing)


async def test_what_goes_wrong_is_the_result_of_a_long_look(tmp_path: Path) -> None:
    look = inspections(tmp_path)
    trigger = look.start("verification", [str(tmp_path / "none")], None)
    failed = await ended(lambda: look.status("verification", trigger))
    assert failed.failure == f"snapshot is not there: no folder {tmp_path / 'none'}; check the path"
    with pytest.raises(Forbidden):
        look.start("verification", ["/etc"], None)


async def test_a_look_that_needs_too_much_is_ended(tmp_path: Path) -> None:
    path = save(tmp_path / "s", counts(*((f"key {n}", n) for n in range(100))))
    huge = "select count(*) from state a, state b, state c, state d, state e"
    slow = inspections(tmp_path, Limits(read_s=0.05))
    with pytest.raises(TooCostly, match=r"did not end in 0\.05 s"):
        await slow.read(path, asked(huge))
    small = inspections(tmp_path, Limits(memory_bytes=1 << 20))
    with pytest.raises(TooCostly, match="needs more than 1 MiB of memory"):
        await small.read(path, asked(huge))


async def test_too_many_looks_at_once_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "s", counts(("ann", 1)))
    busy = inspections(tmp_path, Limits(waiting=0))
    first = busy.start("verification", [path], None)
    await asyncio.sleep(0)  # it has its turn now
    with pytest.raises(Unavailable, match="0 looks into snapshots wait already"):
        busy.start("verification", [path], None)
    assert (await busy.read(path, asked())).rows == [[0, "ann", 1]]
    await ended(lambda: busy.status("verification", first))
