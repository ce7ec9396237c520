"""Promotions and roll-backs while something fails at each step: who runs in the end.

at step n   a run fails | the engine is away, and has forgotten what it was asked
in the end  one version writes every window that was not written, or the sentence says none runs
"""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta

import pytest
from django.db import transaction

from controlplane.backends.contract import SETTING_FROM, SETTING_SHADOW, SETTING_UNTIL
from controlplane.replay.actions import promote_replay, rollback_replay
from operation_cases import NOW, caught_up

AT = NOW + timedelta(days=30)


CUT = AT.isoformat()
ENDS = {
    "promote": {("v1", "", ""), ("v2", "", "")},
    "cut": {("v1", "", ""), ("v1", CUT, ""), ("v2", CUT, "")},
    "promote back": {("v1", "", "")},
    "cut back": {("v1", CUT, "")},
}
"""Who may run in the end, and from which event time on."""
NONE_RUNS = ("no version of flights runs", "no version of flights is known to run")


@pytest.fixture
def begin(flights, alice, engine, drive, way):
    replay = caught_up(flights, alice, engine, drive)
    at = AT if way.startswith("cut") else None
    if way in {"promote", "cut"}:
        return lambda: promote_replay(replay, alice, at=at)
    drive(promote_replay(replay, alice, at=at))
    replay.refresh_from_db()
    return lambda: rollback_replay(replay, alice)


def running(engine):
    """Version, and the span that it writes, of each job that writes to the real targets."""
    return [
        (
            "v2" if "v2" in job.request.artifact_id else "v1",
            job.request.settings.get(SETTING_FROM, ""),
            job.request.settings.get(SETTING_UNTIL, ""),
        )
        for job in engine.jobs.values()
        if not job.status.has_ended and SETTING_SHADOW not in job.request.settings
    ]


def crash(engine, wanted):
    for key, job in engine.jobs.items():
        if job.status.state == "RUNNING" and wanted(job.request):
            engine.crash_job(key, "disk is full")


FAULTS = {
    "old": lambda engine: crash(engine, lambda one: "v2" not in one.artifact_id),
    "new": lambda engine: crash(engine, lambda one: "v2" in one.artifact_id),
    "engine": lambda engine: engine.forget_triggers(),
}


def at_step(operation, step, fault, engine):
    """A probe that lets it happen once, when that step is about to be done."""
    done = []

    def probe(point):
        operation.refresh_from_db()
        if operation.step == step and point == "act" and not done:
            done.append(step)
            fault(engine)

    return probe


@pytest.mark.parametrize(
    ("way", "fault", "steps"),
    [
        ("promote", "old", "ready trigger savepoint old_end"),
        ("promote", "new", "ready stop_replay replay_savepoint"),
        ("promote", "engine", "savepoint replay_savepoint"),
        ("cut", "old", "trigger savepoint old_end stop_replay start_after reach"),
        ("cut", "new", "ready old_end until_up stop_replay replay_savepoint"),
        ("cut", "engine", "savepoint replay_savepoint"),
        ("promote back", "new", "cancel"),
        ("cut back", "new", "cancel"),
    ],
)
def test_one_version_runs_in_the_end_or_it_is_said_that_none_does(
    begin, engine, drive, way, fault, steps
):
    for step in steps.split():
        with transaction.atomic():
            mark, saved = transaction.savepoint(), deepcopy(vars(engine))
            operation = begin()
            ended = drive(operation, at_step(operation, step, FAULTS[fault], engine))
            found = running(engine)
            transaction.savepoint_rollback(mark)
            vars(engine).update(saved)
        assert len(found) <= 1, step
        assert set(found) <= ENDS[way], step
        assert found or any(sentence in ended.error for sentence in NONE_RUNS), (step, ended.error)
