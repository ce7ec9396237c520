"""Pages of savepoints: the catalogue and its filter, one of them, schedules, rules, storage."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.audit.models import AuditEntry
from controlplane.backends.contract import SavepointSummary
from controlplane.backends.fake_snapshots import CONTENTS
from controlplane.operations.models import Operation
from controlplane.snapshots import strays
from controlplane.snapshots.models import Savepoint, SavepointPolicy, SavepointSchedule

HTMX = {"HX-Request": "true"}
PAGE = "/jobs/flights/savepoints/"


@pytest.fixture
def old(flights, run, engine, savepoint):
    """An older savepoint that lies on the engine's storage, beside a newer one."""
    for place in ("/tmp/sp-0", "/tmp/sp-1"):
        engine.savepoints[place] = SavepointSummary(
            place, "flights", 1, 4096, savepoint.event_time, {}, None, CONTENTS
        )
    taken_at = timezone.now() - timedelta(days=30)
    row = Savepoint.objects.create(
        job=flights,
        run=run,
        version=run.version,
        location="/tmp/sp-0",
        origin="scheduled",
        label="nightly",
        status="completed",
        taken_at=taken_at,
        event_time=savepoint.event_time - timedelta(days=3),
        contents=CONTENTS,
        source_positions={"flights": {"EWR": 12}},
    )
    Savepoint.objects.filter(pk=row.pk).update(created_at=taken_at)
    return row


def one(savepoint, verb="") -> str:
    return f"/savepoints/{savepoint.pk}/{verb}"


def read(client, path, **data) -> str:
    response = client.get(path, data)
    assert response.status_code == 200, response.content.decode()
    return response.content.decode()


def test_the_filter_finds_by_label_reason_and_state(as_, alice, old):
    client = as_(alice)
    for wanted in ({"q": "night"}, {"origin": "scheduled"}):
        page = read(client, PAGE, **wanted)
        assert f'id="sp-{old.pk}"' in page
        assert "1 more is not shown" in page
    page = read(client, PAGE, health="damaged")
    assert "No savepoint matches" in page
    assert "The filter hides 2." in page


def test_the_axis_draws_wall_clock_or_event_time(as_, alice, old, checkpoints):
    wall, event = read(as_(alice), PAGE), read(as_(alice), PAGE, axis="event")
    title = f'aria-label="Savepoint {old.pk}, nightly, 2013-03-11 05:07:00 UTC, unverified"'
    assert "Checkpoint 19, failed" in wall
    assert title in event
    assert "Checkpoint 19, failed" not in event


def test_one_savepoint_shows_what_is_in_it_and_where_it_is_used(as_, alice, old, replay):
    page = read(as_(alice), one(old))
    assert "<code>carrier</code> String" in page
    assert "flights, 1 split" in page
    assert "unknown: nobody has looked; Verify asks its sources" in page
    assert "replay r-1" in read(as_(alice), one(replay.savepoint)).lower()


def test_some_rows_of_a_state_are_read_and_that_is_audited(as_, alice, old):
    asked = {"operator": "daily", "state": "panes", "key": "carrier=c7"}
    page = read(as_(alice), one(old, "rows/"), **asked)
    assert "<td>c7</td>" in page
    entry = AuditEntry.objects.get(action="savepoint.read")
    assert entry.after == {**asked, "key": {"carrier": "c7"}, "rows": 1}


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"operator": "daily", "state": "x"}, "Operator &#x27;daily&#x27; has no state"),
        ({"operator": "daily", "state": "panes", "key": "c7"}, "Key must name columns: got c7"),
        ({}, "Choose a state."),
    ],
)
def test_a_question_that_cannot_be_meant_is_refused(asked, sentence, as_, alice, old):
    response = as_(alice).get(one(old, "rows/"), asked, headers=HTMX)
    assert response.status_code in {400, 409}
    assert sentence in response.content.decode()


def test_two_are_compared_by_shape_and_row_by_row(as_, alice, old, savepoint):
    client, path = as_(alice), one(old, f"diff/{savepoint.pk}/")
    Savepoint.objects.filter(pk=savepoint.pk).update(
        contents={"operators": [{"uid": "daily", "states": [dict(STATE, values={"n": "Float64"})]}]}
    )
    page = read(client, path)
    assert "the engine reads both" in page
    assert "value (carrier String, n Float64)" in page
    while "the engine reads both" in page:
        page = read(client, path)
    assert "read by the engine" in page


STATE = CONTENTS["operators"][0]["states"][0]


def test_a_deletion_needs_the_number_and_says_what_stands_against_it(as_, alice, old, savepoint):
    client = as_(alice)
    wrong = client.post(one(old, "delete/"), {"how": "mark", "typed": "x"}, headers=HTMX)
    assert f"Type {old.pk} to confirm: got x." in wrong.content.decode()
    newest = {"how": "mark", "typed": str(savepoint.pk)}
    good = client.post(one(savepoint, "delete/"), newest, headers=HTMX)
    assert "it is the last good one of flights" in good.content.decode()

    client.post(one(old, "delete/"), {"how": "mark", "typed": str(old.pk), "reason": "too old"})
    page = read(client, PAGE)
    assert "To be deleted" in page
    assert "too old" in page
    client.post(one(old, "pin/"), {"pinned": "1"})
    assert "To be deleted" not in read(client, PAGE)


def test_label_expiry_and_verification_have_a_form_each(as_, alice, old):
    client = as_(alice)
    client.post(one(old, "label/"), {"label": "<b>bold</b>"})
    client.post(one(old, "expiry/"), {"expires": "2099-12-31"})
    assert client.post(one(old, "verify/"), headers=HTMX).status_code == 202
    old.refresh_from_db()
    assert (old.label, f"{old.expires_at:%Y-%m-%d}") == ("<b>bold</b>", "2099-12-31")
    assert Operation.objects.get(kind="verify").params["location"] == "/tmp/sp-0"
    assert "<b>bold</b>" not in read(client, one(old))
    past = client.post(one(old, "expiry/"), {"expires": "2001-01-01"}, headers=HTMX)
    assert "Expiry must lie in the future: got 2001-01-01 23:59 UTC" in past.content.decode()


def test_rules_are_tried_before_they_are_saved(as_, alice, old):
    client = as_(alice)
    tried = read(client, f"{PAGE}rules/preview/", keep_last="1", by_hand="1")
    assert "1 would be kept and 1 deleted" in tried
    assert "would be deleted: no rule keeps it" in tried
    assert not SavepointPolicy.objects.exists()

    client.post(f"{PAGE}rules/", {"keep_last": "1", "grace_hours": "2", "zone": "Europe/Berlin"})
    policy = SavepointPolicy.objects.get()
    assert (policy.keep_last, policy.grace_hours, policy.updated_by) == (1, 2, alice)
    assert "Europe/Berlin" in read(client, PAGE)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"zone": "Mars"}, "Time zone is not known: got &#x27;Mars&#x27;"),
        ({"keep_last": "10001"}, "Keep_last must be between 1 and 10,000: got 10001"),
        ({"keep_last": "0"}, "greater than or equal to 1"),
    ],
)
def test_rules_that_make_no_sense_are_refused(asked, sentence, as_, alice, run):
    response = as_(alice).post(f"{PAGE}rules/", asked, headers=HTMX)
    assert response.status_code == 400
    assert sentence.lower() in response.content.decode().lower()


def test_a_cron_schedule_shows_its_next_five_runs_and_rests_on_demand(as_, alice, run):
    client = as_(alice)
    asked = {"cron": "0 2 * * *", "zone": "Europe/Berlin", "blackouts": "sat,sun 00:00-00:00"}
    client.post("/jobs/flights/schedules/", {**asked, "skip_unhealthy": "1"})
    page = read(client, PAGE)
    assert "At 0 2 * * * Europe/Berlin" in page
    assert "Not sat,sun 00:00-00:00 Europe/Berlin; not while the newest checkpoint" in page
    assert page.split("Next five runs")[1].split("</details>")[0].count("<li>") == 5

    schedule = SavepointSchedule.objects.get()
    client.post(f"/schedules/{schedule.pk}/pause/")
    assert "rests" in read(client, PAGE)


def test_storage_says_what_has_no_row_and_what_has_no_files(as_, alice, old, engine, settings):
    engine.lose("/tmp/sp-0")
    engine.leave(f"{settings.HEADWATER_SAVEPOINTS}/flights/77aa/savepoint-9")
    client = as_(alice)
    client.post(f"{PAGE}scan/")
    page = read(client, PAGE)
    assert f"Savepoint {old.pk} has no files" in page
    assert "Part of a savepoint that no row is about" in page

    (stray,) = strays.StrayFolder.objects.all()
    client.post(f"/strays/{stray.pk}/clear/")
    assert not engine.remains


def test_the_page_of_all_jobs_shows_recovery_points_against_objectives(as_, alice, bob, old):
    job = old.job
    job.settings |= {"recovery_point_objective_s": 60}
    job.desired_state = "running"
    job.save()
    Savepoint.objects.update(taken_at=timezone.now() - timedelta(days=2))
    for person in (alice, bob):
        page = read(as_(person), "/savepoints/")
        assert "Missed" in page
        assert ("Replay from here" in page) is (person is alice)
    assert "No savepoints yet" in read(as_(type(bob).objects.create_user("eve")), "/savepoints/")


def test_more_savepoints_take_no_more_queries(as_, alice, old, django_assert_num_queries):
    client = as_(alice)
    for count in (0, 20):
        more = {"job": old.job, "run": old.run, "origin": "manual", "status": "completed"}
        rows = [Savepoint(**more, location=f"/s{number}") for number in range(count)]
        Savepoint.objects.bulk_create(rows)
        with django_assert_num_queries(31):
            client.get(PAGE)
