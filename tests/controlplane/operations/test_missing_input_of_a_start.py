"""A start of the job itself from a savepoint older than its input: shown, and agreed to or not."""

from __future__ import annotations

from html import unescape

import pytest

from controlplane.audit.models import AuditEntry
from controlplane.jobs import actions
from controlplane.snapshots.actions import request_savepoint

GONE = "split 'a.jsonl', event time from 2013-03-01 on, lines from 2 on: no file /logs/a.jsonl"


@pytest.fixture
def version_2(running, alice):
    return actions.add_version(running, alice, "flights_v2.py", b"import engine as hw\n")


@pytest.fixture
def savepoint(running, alice, drive, engine):
    drive(request_savepoint(running, alice))
    engine.gaps = {"flights": GONE}
    return running.savepoints.get()


@pytest.fixture
def ended(running, savepoint, alice, drive):
    drive(actions.cancel(running, alice))


def agreed_at_the_engine(job, engine):
    run = job.runs.first()
    assert run.accepted_gaps == ["flights"]
    return engine.jobs[run.engine_job_id].request.accept_missing_input == frozenset({"flights"})


@pytest.mark.usefixtures("ended")
def test_a_start_shows_the_missing_range_and_carries_the_consent(
    running, savepoint, alice, client, drive, engine
):
    client.force_login(alice)
    chosen = {"version": 1, "savepoint": savepoint.pk}
    shown = unescape(client.get("/jobs/flights/start/check/", chosen).content.decode())
    assert GONE in shown
    assert '<input type="checkbox" name="accept" value="flights" required>' in shown
    client.post("/jobs/flights/start/", chosen | {"accept": "flights"})
    assert drive(running.operations.latest("created_at")).error == ""
    assert agreed_at_the_engine(running, engine)
    audited = AuditEntry.objects.filter(action="deploy.request").latest("pk")
    assert audited.after["accept_missing_input"] == ["flights"]


def test_an_upgrade_is_refused_before_anything_stops_unless_somebody_agrees(
    running, version_2, savepoint, alice, client, drive, engine
):
    client.force_login(alice)
    refused = drive(actions.upgrade(running, alice, version_2))
    assert (refused.step, GONE in refused.error) == ("fit", True)
    assert "stop" not in engine.calls
    shown = client.get("/jobs/flights/start/check/", {"version": 2}).content.decode()
    assert f"From savepoint {savepoint.pk} version 2 starts only if you agree" in shown
    client.post("/jobs/flights/start/", {"version": 2, "accept": "flights"})
    assert drive(running.operations.latest("created_at")).error == ""
    assert agreed_at_the_engine(running, engine)


def test_what_starts_empty_restores_nothing(running, alice, client):
    client.force_login(alice)
    for asked, said in (
        ("stateless", "It starts empty"),
        ("savepoint", "no savepoint of this run"),
    ):
        shown = client.get("/jobs/flights/start/check/", {"version": 1, "mode": asked})
        assert said in shown.content.decode()


@pytest.mark.usefixtures("ended")
def test_the_api_says_and_takes_the_same(running, savepoint, alice, client, drive, engine):
    client.force_login(alice)
    plan = client.get(
        "/api/v1/jobs/flights/replays/plan", {"savepoint": savepoint.pk, "version": 1}
    )
    assert GONE in plan.json()["refusals"][0]
    wish = {"savepoint": savepoint.pk, "accept_missing_input": ["flights"]}
    answer = client.post("/api/v1/jobs/flights/start", wish, "application/json")
    assert answer.status_code == 202
    assert drive(running.operations.latest("created_at")).error == ""
    assert agreed_at_the_engine(running, engine)
