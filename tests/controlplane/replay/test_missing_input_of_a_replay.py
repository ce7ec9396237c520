"""A savepoint older than the input that its sources still have: refused, or agreed to for good."""

from __future__ import annotations

import pytest

from controlplane.access.errors import Refused
from controlplane.audit.models import AuditEntry
from controlplane.replay.actions import start_replay
from controlplane.replay.preflight import preflight
from controlplane.snapshots.actions import request_savepoint
from controlplane.snapshots.models import Savepoint

GONE = "split 'a.jsonl', event time from 2013-03-01 on, lines from 2 on: no file /logs/a.jsonl"


@pytest.fixture
def savepoint(running, alice, drive, engine):
    drive(request_savepoint(running, alice))
    engine.gaps = {"flights": GONE}
    return Savepoint.objects.get()


@pytest.fixture
def version(running):
    return running.versions.get()


def test_the_restore_check_names_the_missing_range(savepoint, version):
    found = preflight(savepoint, version, 1)
    assert not found.ok
    assert GONE in found.refusals[0]


def test_consent_is_by_source(savepoint, version):
    assert not preflight(savepoint, version, 1, accept_missing=["daily"]).ok
    assert preflight(savepoint, version, 1, accept_missing=["flights"]).ok


def test_consent_goes_to_the_engine_and_into_the_audit(savepoint, version, alice, drive, engine):
    replay, operation = start_replay(savepoint, version, alice, 1, accept_missing=["flights"])
    assert drive(operation).error == ""
    replay.refresh_from_db()
    assert replay.accepted_gaps == ["flights"]
    request = engine.jobs[replay.run.engine_job_id].request
    assert request.accept_missing_input == frozenset({"flights"})
    audited = AuditEntry.objects.get(action="start_replay.request")
    assert audited.after["accept_missing_input"] == ["flights"]


def test_chosen_positions_go_to_the_engine_and_into_the_audit(
    savepoint, version, alice, drive, engine
):
    (uid,) = savepoint.source_positions
    chosen = {uid: "2013-02-01"}
    replay, operation = start_replay(savepoint, version, alice, 1, positions=chosen)
    assert drive(operation).error == ""
    replay.refresh_from_db()
    request = engine.jobs[replay.run.engine_job_id].request
    setting = f"{uid}=2013-02-01T00:00:00+00:00"
    assert request.settings["headwater.restore.positions"] == setting
    audited = AuditEntry.objects.get(action="start_replay.request")
    assert audited.after["positions"] == {uid: "2013-02-01T00:00:00+00:00"}


@pytest.mark.parametrize("chosen", [{"nobody": "earliest"}, {"flights": "noon"}])
def test_a_position_of_nothing_or_nowhere_is_refused(savepoint, version, alice, chosen):
    with pytest.raises(Refused, match=r"has no source nobody|cannot begin there: got 'noon'"):
        start_replay(savepoint, version, alice, 1, positions=chosen)
