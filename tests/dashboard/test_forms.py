"""Every form: it works, it is refused with a sentence, and it is not for everybody."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from controlplane.access.logins import issue_login
from controlplane.jobs.models import Job
from controlplane.operations.models import Operation
from controlplane.snapshots.models import SavepointSchedule

HTMX = {"HX-Request": "true"}


def job_file(content=b"import engine as hw\n", name="flights_v2.py"):
    return SimpleUploadedFile(name, content)


def told(response):
    return json.loads(response["HX-Trigger"])


def refusal(response):
    assert response["X-Refused"]
    return response.content.decode()


# ---- savepoints


def test_a_savepoint_is_an_operation_that_the_page_follows(as_, alice, run):
    response = as_(alice).post(
        "/jobs/flights/savepoints/take/", {"label": "x", "idempotency_key": "k1"}, headers=HTMX
    )
    operation = Operation.objects.get()
    assert response.status_code == 202
    assert told(response) == {
        "operation": {"id": str(operation.pk), "title": "Savepoint of flights"}
    }


def test_without_scripts_the_same_form_leads_back_to_the_page(as_, alice, run):
    response = as_(alice).post("/jobs/flights/savepoints/take/", {"label": "x"})
    assert response.status_code == 302
    assert response["Location"] == "/jobs/flights/savepoints/"


def test_a_double_click_is_one_wish(as_, alice, run):
    client, wish = as_(alice), {"label": "x", "idempotency_key": "k1"}
    for _ in range(2):
        client.post("/jobs/flights/savepoints/take/", wish, headers=HTMX)
    assert Operation.objects.count() == 1


def test_a_savepoint_of_a_stopped_job_is_refused_with_a_sentence(as_, alice, flights):
    response = as_(alice).post("/jobs/flights/savepoints/take/", {}, headers=HTMX)
    assert response.status_code == 409
    assert "is not running" in refusal(response)
    assert not Operation.objects.exists()


def test_a_plain_post_that_is_refused_shows_the_sentence_on_a_page(as_, alice, flights):
    response = as_(alice).post("/jobs/flights/savepoints/take/", {})
    assert response.status_code == 409
    assert "That was not done" in response.content.decode()


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("savepoints/take/", {}),
        ("savepoints/import/", {"path": "/tmp/sp"}),
        ("schedules/", {"every_minutes": "5"}),
        ("versions/upload/", {"file": "x"}),
        ("stop/", {"how": "cancel", "typed": "flights"}),
        ("start/", {"version": "1"}),
        ("control/", {"key": "pressure", "value": "2"}),
    ],
)
def test_a_viewer_may_not_and_a_stranger_sees_nothing(path, fields, as_, bob, mallory, run):
    def send(user):
        given = {name: job_file() if name == "file" else value for name, value in fields.items()}
        return as_(user).post(f"/jobs/flights/{path}", given, headers=HTMX).status_code

    assert send(bob) == 403
    assert send(mallory) == 404
    assert not Operation.objects.exists()


# ---- schedules


def test_a_schedule_is_added_and_shown_with_its_next_run(as_, alice, run):
    client = as_(alice)
    client.post("/jobs/flights/schedules/", {"every_minutes": "0.5"})
    page = client.get("/jobs/flights/savepoints/").content.decode()
    assert "Every 0.5 min" in page
    assert "A savepoint of flights is taken every 0.5 min" in page


@pytest.mark.parametrize(
    ("minutes", "sentence"),
    [
        ("", "Schedule needs an interval or a cron line: give one of the two."),
        ("soon", "Minutes must be a number, such as 30 or 0.5."),
        ("0.01", "A savepoint can be taken every 0.1 minutes at most; give a larger number."),
        ("nan", "nan"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(minutes, sentence, as_, alice, run):
    response = as_(alice).post("/jobs/flights/schedules/", {"every_minutes": minutes}, headers=HTMX)
    assert response.status_code == 400
    assert sentence in refusal(response) or sentence == "nan"
    assert not SavepointSchedule.objects.exists()


def test_a_schedule_is_removed_by_its_team_only(as_, alice, mallory, run):
    client = as_(alice)
    client.post("/jobs/flights/schedules/", {"every_minutes": "5"})
    path = f"/schedules/{SavepointSchedule.objects.get().pk}/remove/"
    assert as_(mallory).post(path).status_code == 404
    client.post(path)
    assert not SavepointSchedule.objects.exists()


# ---- versions and deploying


def test_a_version_is_uploaded_with_its_note(as_, alice, flights):
    response = as_(alice).post(
        "/jobs/flights/versions/upload/", {"file": job_file(), "note": "fixed"}, headers=HTMX
    )
    assert response["HX-Redirect"] == "/jobs/flights/versions/"
    version = flights.versions.get(number=2)
    assert (version.filename, version.note) == ("flights_v2.py", "fixed")


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (job_file(b"def x(:\n"), "line 1"),
        (job_file(name="flights.exe"), ".py"),
        (None, "Choose a job file that ends in .py, .zip, .whl or .jar."),
    ],
)
def test_a_file_that_is_no_job_is_refused_at_the_form(file, words, as_, alice, flights):
    fields = {"note": "x"} | ({"file": file} if file else {})
    response = as_(alice).post("/jobs/flights/versions/upload/", fields, headers=HTMX)
    assert response.status_code == 400
    assert words in refusal(response)
    assert flights.versions.count() == 1


def deploy_fields(**changed):
    fields = {"name": "orders", "team": "payments", "parallelism": "2", "arguments": "--speed 5"}
    return fields | {"file": job_file()} | changed


def test_a_new_job_is_created_and_started(as_, alice, flights):
    response = as_(alice).post("/jobs/deploy/", deploy_fields(), headers=HTMX)
    assert response["HX-Redirect"] == "/jobs/orders/"
    job = Job.objects.get(name="orders")
    assert job.settings["arguments"] == ["--speed", "5"]
    assert Operation.objects.get(job=job).kind == "deploy"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": "flights"}, "taken"),
        ({"name": "Ünfug"}, "cannot be used"),
        ({"name": ""}, "Give the job a name."),
        ({"arguments": "'open"}, "close every quote"),
        ({"team": "others"}, "others"),
    ],
)
def test_a_job_that_cannot_be_is_refused_at_the_form(changed, words, as_, alice, flights):
    response = as_(alice).post("/jobs/deploy/", deploy_fields(**changed), headers=HTMX)
    assert response.status_code in {400, 404}
    assert words in refusal(response)
    assert Job.objects.count() == 1


# ---- ending and starting


@pytest.mark.parametrize(
    ("how", "kind"), [("stop", "stop"), ("drain", "drain"), ("cancel", "cancel")]
)
def test_a_job_is_ended_in_the_chosen_way(how, kind, as_, alice, run):
    fields = {"how": how, "typed": "flights", "idempotency_key": "k"}
    assert as_(alice).post("/jobs/flights/stop/", fields, headers=HTMX).status_code == 202
    assert Operation.objects.get().kind == kind


def test_only_the_exact_name_ends_a_job(as_, alice, run):
    response = as_(alice).post(
        "/jobs/flights/stop/", {"how": "cancel", "typed": "flight"}, headers=HTMX
    )
    assert response.status_code == 400
    assert "Type flights to confirm: got flight." in refusal(response)
    assert not Operation.objects.exists()


def test_a_stopped_job_is_started_from_a_savepoint(as_, alice, run, savepoint):
    type(run).objects.update(state="FINISHED")
    fields = {"version": "1", "savepoint": str(savepoint.pk), "idempotency_key": "k"}
    assert as_(alice).post("/jobs/flights/start/", fields, headers=HTMX).status_code == 202
    operation = Operation.objects.get()
    assert (operation.kind, operation.params["savepoint"]) == ("deploy", savepoint.pk)


# ---- replays


def replay_fields(savepoint, **changed):
    return {"savepoint": savepoint.pk, "version": 1, "parallelism": 2} | changed


def test_a_replay_starts_and_leads_to_its_page(as_, alice, savepoint):
    response = as_(alice).post("/replays/new/", replay_fields(savepoint), headers=HTMX)
    replay = savepoint.replays.get()
    assert response["HX-Redirect"] == f"/replays/{replay.pk}/"


def test_a_stranger_cannot_replay(as_, bob, mallory, savepoint):
    fields = replay_fields(savepoint)
    assert as_(mallory).post("/replays/new/", fields, headers=HTMX).status_code == 404
    assert as_(bob).post("/replays/new/", fields, headers=HTMX).status_code == 403
    assert not savepoint.replays.exists()


def test_a_replay_is_abandoned_by_its_typed_name(as_, alice, replay):
    path = f"/replays/{replay.pk}/abandon/"
    wrong = as_(alice).post(path, {"typed": "r-2"}, headers=HTMX)
    assert wrong.status_code == 400
    right = as_(alice).post(path, {"typed": "r-1", "idempotency_key": "k"}, headers=HTMX)
    assert right.status_code == 202


# ---- signing in


def test_a_link_signs_in_once(alice):
    path = f"/login/once/{issue_login(alice, timezone.now())}/"
    first, second = Client(), Client()
    assert first.get(path)["Location"] == "/jobs/"
    assert first.get("/jobs/").status_code == 200
    refused = second.get(path)
    assert refused.status_code == 403
    assert "used already or has expired" in refused.content.decode()


def test_signing_out_ends_the_session(as_, alice):
    client = as_(alice)
    client.post("/logout/")
    assert client.get("/jobs/").status_code == 302


def test_a_form_without_its_token_is_refused(alice, run):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.post("/jobs/flights/savepoints/take/", {}).status_code == 403
    assert not Operation.objects.exists()
