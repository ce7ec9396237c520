"""Whether a snapshot fits a job, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.compatibility import Outcome, RestoreReport, check_restore
from engine.elements import MAX_TIME
from engine.errors import RestoreError
from engine.graph.plan import OperatorKind, Plan, StatePlan

MakePlan = Callable[..., Plan]


@pytest.fixture
def manifest(tmp_path: Path, take_snapshot: Callable[..., Manifest]) -> Manifest:
    return take_snapshot(tmp_path)


def outcomes(report: RestoreReport) -> list[tuple[str, str | None, Outcome]]:
    return [(row.uid, row.state, row.outcome) for row in report.rows]


def test_the_same_job_is_restored_at_any_parallelism(
    manifest: Manifest, make_plan: MakePlan
) -> None:
    report = check_restore(manifest, make_plan(3))
    assert outcomes(report) == [
        ("read", None, Outcome.RESTORED),
        ("count", "counts", Outcome.RESTORED),
    ]
    assert report.rows[0].reason == "goes on with 2 splits"
    assert report.rows[1].rows == 128
    report.raise_if_refused()


def test_a_state_that_would_be_lost_has_to_be_allowed(
    manifest: Manifest, make_plan: MakePlan
) -> None:
    plan = make_plan(uid="recount")
    report = check_restore(manifest, plan)
    assert outcomes(report) == [
        ("read", None, Outcome.RESTORED),
        ("recount", None, Outcome.NEW),
        ("count", None, Outcome.DROPPED),
    ]
    with pytest.raises(
        RestoreError,
        match="snapshot does not fit the job: operator 'count': is in the snapshot and not in the "
        "job: state 'counts' with 128 rows would be lost; keep its uid, or allow it",
    ):
        report.raise_if_refused()


@pytest.mark.parametrize("allowed", [True, {"count"}, ["count", "other"]])
def test_losing_state_can_be_allowed_for_all_or_per_operator(
    manifest: Manifest, make_plan: MakePlan, allowed: bool | set[str]
) -> None:
    report = check_restore(manifest, make_plan(uid="recount"), allowed)
    assert report.refused == ()
    assert outcomes(report)[-1] == ("count", None, Outcome.DROPPED)


def test_allowing_one_operator_allows_no_other(manifest: Manifest, make_plan: MakePlan) -> None:
    report = check_restore(manifest, make_plan(uid="recount"), {"recount"})
    assert [row.uid for row in report.refused] == ["count"]


def test_changed_types_are_shown_stored_and_wanted(manifest: Manifest, make_plan: MakePlan) -> None:
    wider = StatePlan("counts", "value", {"k": "String"}, {"n": "Float64"})
    (row,) = check_restore(manifest, make_plan(states=(wider,))).refused
    assert row.outcome is Outcome.INCOMPATIBLE
    assert row.stored == "value (k: String → n: Int64, at: Datetime(us, UTC))"
    assert row.wanted == "value (k: String → n: Float64)"
    assert row.stored in row.sentence
    assert row.wanted in row.sentence


def test_a_key_is_not_a_value(manifest: Manifest, make_plan: MakePlan) -> None:
    moved = StatePlan("counts", "value", {"k": "String", "n": "Int64"}, {"at": "Datetime(us, UTC)"})
    assert len(check_restore(manifest, make_plan(states=(moved,))).refused) == 1


def test_allowing_a_loss_never_allows_what_cannot_work(
    manifest: Manifest, make_plan: MakePlan
) -> None:
    other = StatePlan("counts", "runs", {"k": "String"}, {"n": "Int64"})
    assert check_restore(manifest, make_plan(states=(other,)), True).refused


def test_a_renamed_state_is_new_and_the_old_one_dropped(
    manifest: Manifest, make_plan: MakePlan
) -> None:
    renamed = StatePlan("totals", "value", {"k": "String"}, {"n": "Int64"})
    report = check_restore(manifest, make_plan(states=(renamed,)))
    assert outcomes(report)[1:] == [
        ("count", "totals", Outcome.NEW),
        ("count", "counts", Outcome.DROPPED),
    ]
    assert [row.state for row in report.refused] == ["counts"]


def test_max_parallelism_cannot_change(manifest: Manifest, make_plan: MakePlan) -> None:
    (row,) = check_restore(manifest, make_plan(max_parallelism=64)).refused
    assert row.sentence == (
        "operator 'count': max parallelism cannot change: stored 128, wanted 64; set it to 128"
    )


def test_a_source_cannot_become_something_else(manifest: Manifest, make_plan: MakePlan) -> None:
    plan = make_plan()
    reading = replace(plan.vertices[0].operators[0], kind=OperatorKind.TRANSFORM)
    vertices = (replace(plan.vertices[0], operators=(reading,)), plan.vertices[1])
    (row,) = check_restore(manifest, replace(plan, vertices=vertices)).refused
    assert row.uid == "read"


def test_staged_output_is_not_dropped_in_silence(manifest: Manifest, make_plan: MakePlan) -> None:
    plan = make_plan()
    vertices = (
        plan.vertices[0],
        replace(plan.vertices[1], operators=plan.vertices[1].operators[:1]),
    )
    (row,) = check_restore(manifest, replace(plan, vertices=vertices)).refused
    assert "2 staged outputs would be lost" in row.sentence


def test_another_engine_version_and_a_drain_are_warned_of(
    manifest: Manifest, make_plan: MakePlan
) -> None:
    old = replace(
        manifest,
        engine_version="0.0.1",
        operators=tuple(replace(entry, watermark=MAX_TIME) for entry in manifest.operators),
    )
    first, second = check_restore(old, make_plan()).warnings
    assert "written by engine 0.0.1" in first
    assert "taken at a drain" in second
