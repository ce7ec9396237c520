"""The API: the same rules as the pages, for programs."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.access.models import Membership, Role, Team
from controlplane.access.tokens import issue_token
from controlplane.alerts.models import Alert, AlertRule
from controlplane.audit.models import AuditEntry
from controlplane.audit.record import record
from controlplane.backends.models import Cluster
from controlplane.jobs import actions
from controlplane.jobs.models import Run
from controlplane.operations.models import Operation
from controlplane.snapshots.actions import request_savepoint
from controlplane.snapshots.models import Savepoint
from large_history import fill
from people import JOB_FILE

NOW = timezone.now()


class Caller:
    """A program with a token."""

    def __init__(self, owner, scope="operate", team=None):
        _, text = issue_token(owner, "ci", scope, 30, team, NOW)
        self.headers = {"Authorization": f"Bearer {text}"}
        self.client = Client(enforce_csrf_checks=True, raise_request_exception=False)

    def get(self, path, **query):
        return self.client.get(f"/api/v1/{path}", query, headers=self.headers)

    def post(self, path, body=None, key="", method="post"):
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        call = getattr(self.client, method)
        return call(f"/api/v1/{path}", json.dumps(body or {}), "application/json", headers=headers)

    def send(self, path, **form):
        return self.client.post(f"/api/v1/{path}", form, headers=self.headers)


@pytest.fixture
def program(alice, flights):
    return Caller(alice)


def job_file(name="flights.py"):
    return SimpleUploadedFile(name, JOB_FILE)


def test_a_program_does_what_its_owner_does(program, engine, drive):
    made = program.send("jobs", name="clicks", team="payments", file=job_file(), parallelism=2)
    assert (made.status_code, made.json()["state"]) == (201, "STOPPED")
    operation = program.post("jobs/clicks/start").json()
    drive(Operation.objects.get(pk=operation["id"]))
    taken = program.post("jobs/clicks/savepoints", {"label": "nightly"}).json()
    drive(Operation.objects.get(pk=taken["id"]))

    assert program.get("jobs/clicks").json()["run"]["state"] == "RUNNING"
    followed = program.get(f"operations/{taken['id']}").json()
    assert followed["state"] == "succeeded"
    assert [event["text"] for event in followed["events"]]
    (savepoint,) = program.get("jobs/clicks/savepoints").json()["items"]
    assert (savepoint["id"], savepoint["label"]) == (followed["savepoint"], "nightly")
    stopped = program.post("jobs/clicks/stop").json()
    drive(Operation.objects.get(pk=stopped["id"]))
    assert program.get("jobs/clicks").json()["state"] == "FINISHED"


def test_what_a_program_does_is_audited_as_its_owners(program, alice):
    answer = program.send("jobs/flights/versions", file=job_file(), note="faster")
    assert answer.json()["number"] == 2

    entry = AuditEntry.objects.filter(action="version.add").get()
    assert entry.actor == alice
    assert entry.request_id == answer["X-Request-Id"]


def test_a_reading_token_is_told_what_it_lacks(alice, flights):
    answer = Caller(alice, "read").post("jobs/flights/start")

    assert answer.status_code == 403
    assert (
        "needs the operator role in team payments: token ci gives viewer" in answer.json()["detail"]
    )


def test_for_a_token_of_another_team_the_job_is_not_there(alice, flights):
    other = Team.objects.create(name="other")
    Membership.objects.create(user=alice, team=other, role=Role.ADMIN)
    program = Caller(alice, "admin", other)

    assert program.get("jobs").json()["items"] == []
    assert program.get("jobs/flights").status_code == 404
    assert program.get("me").json() == {
        "user": "alice",
        "platform_admin": False,
        "teams": {"other": "admin"},
        "token": "ci",
    }


def test_a_problem_says_what_and_in_which_request(program):
    answer = program.get("jobs/nowhere")

    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json() == {
        "type": "urn:headwater:problem:not_found",
        "title": "Not Found",
        "status": 404,
        "detail": "there is no job nowhere that you can see",
        "code": "not_found",
        "fields": {},
        "request_id": answer["X-Request-Id"],
    }


@pytest.mark.parametrize("given", ["Bearer hw_wrong", "Bearer ", "Bearer"])
def test_a_wrong_token_opens_nothing_even_beside_a_session(client, alice, given):
    client.force_login(alice)
    answer = client.get("/api/v1/me", headers={"Authorization": given})

    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_session_reads_without_and_writes_with_the_csrf_token(alice, flights):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    assert browser.get("/api/v1/me").json()["user"] == "alice"

    address, body = "/api/v1/jobs/flights/schedules", {"every_minutes": 5}
    refused = browser.post(address, body, "application/json")
    assert (refused.status_code, refused.json()["code"]) == (403, "csrf")
    browser.get("/login/")
    browser.get("/jobs/")
    token = browser.cookies["headwater_csrf"].value
    done = browser.post(address, body, "application/json", headers={"X-CSRFToken": token})
    assert done.status_code == 201


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("jobs/flights/start", {"version": 0}, "version cannot be used: input should be greater"),
        ("jobs/flights/start", {"version": 9}, "there is no version 9 of flights"),
        ("jobs/flights/upgrade", {}, "version cannot be used: field required"),
        ("jobs/flights/schedules", {"every_minutes": 0}, "interval must be between"),
        ("jobs/flights/stop", {}, "flights"),
    ],
)
def test_bad_input_gets_one_sentence(program, path, body, says):
    answer = program.post(path, body)
    assert answer.status_code in {400, 404, 409, 422}
    assert says in answer.json()["detail"]


def test_a_body_that_is_no_json_is_refused(program):
    answer = program.client.post(
        "/api/v1/jobs/flights/start", "{", "application/json", headers=program.headers
    )
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


def test_pages_hold_each_row_once(program, flights, alice):
    for number in range(5):
        Savepoint.objects.create(job=flights, origin="manual", label=str(number))
    told, cursor = [], ""
    while cursor is not None:
        answer = program.get("jobs/flights/savepoints", limit=2, cursor=cursor).json()
        told += [one["label"] for one in answer["items"]]
        cursor = answer["next"]
        Savepoint.objects.create(job=flights, origin="manual", label="meanwhile")
    assert told == ["4", "3", "2", "1", "0"]


@pytest.mark.parametrize("cursor", ["x", "W10", "WyJhIiwgImIiXQ", "WzEsIDJd", "bnVsbA", "é"])
def test_a_cursor_of_another_list_is_refused(program, cursor):
    answer = program.get("jobs/flights/savepoints", cursor=cursor)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


@pytest.mark.parametrize("limit", [0, 201])
def test_a_page_has_a_size(program, limit):
    assert program.get("jobs", limit=limit).status_code == 422


LISTS = [
    "jobs",
    "jobs/flights/runs",
    "jobs/flights/versions",
    "jobs/flights/savepoints",
    "operations",
    "alerts",
    "audit",
]


@pytest.mark.parametrize("path", LISTS)
def test_a_list_takes_as_many_queries_however_long_it_is(program, path, flights, alice):
    program.get(path)

    def count():
        with CaptureQueriesContext(connection) as queries:
            assert program.get(path).status_code == 200
        return len(queries)

    rule = AlertRule.objects.create(team=flights.team, measure="restarts", threshold=1)
    fill(flights.team, flights.cluster, jobs=1, checkpoints=2, first=9)
    before = count()
    for job in fill(flights.team, flights.cluster, jobs=3, checkpoints=6):
        version = actions.add_version(
            flights, alice, "job.py", JOB_FILE + b"# " + job.name.encode()
        )
        run = Run.objects.create(
            job=flights,
            version=version,
            cluster=flights.cluster,
            engine_job_id=job.name,
            state="FINISHED",
            state_since=timezone.now(),
        )
        request_savepoint(job, alice)
        Operation.objects.filter(job=job).update(run=run)
        now = timezone.now()
        Alert.objects.create(rule=rule, job=job, state="firing", since=now, seen_at=now)
        Savepoint.objects.create(job=flights, origin="manual", created_by=alice)
        record(alice, "x", "y", job=flights)
    assert count() == before


def test_a_savepoint_is_named_pinned_and_kept_until_a_day(program, flights):
    savepoint = Savepoint.objects.create(job=flights, origin="manual", status="completed")
    address = f"savepoints/{savepoint.pk}"
    wish = {"label": "before v2", "pinned": True, "expires_at": "2999-01-01T00:00:00Z"}

    told = program.post(address, wish, method="patch").json()
    assert {name: told[name] for name in wish} == wish
    kept = program.post(address, {"pinned": False}, method="patch").json()
    assert (kept["label"], kept["expires_at"]) == ("before v2", wish["expires_at"])
    assert program.post(address, {"expires_at": None}, method="patch").json()["expires_at"] is None
    past = program.post(
        address, {"label": "x", "expires_at": "2001-01-01T00:00:00Z"}, method="patch"
    )
    assert past.status_code == 400
    assert program.get(address).json()["label"] == "before v2"


def test_deleting_waits_for_the_time_of_grace_and_spares_what_is_needed(program, flights):
    first = Savepoint.objects.create(job=flights, origin="manual", status="completed")
    refused = program.post(f"savepoints/{first.pk}/delete", {"reason": "old"})
    assert refused.status_code == 409  # it is the last good one
    Savepoint.objects.create(job=flights, origin="manual", status="completed")

    marked = program.post(f"savepoints/{first.pk}/delete", {"reason": "old"}).json()
    assert (marked["status"], marked["delete_reason"]) == ("marked", "old")
    assert marked["delete_at"] > marked["created_at"]


def test_a_schedule_by_cron_is_told_as_it_was_asked_for(program):
    wish = {"cron": "0 3 * * *", "zone": "Europe/Berlin", "blackouts": "sat,sun 00:00-00:00"}
    made = program.post("jobs/flights/schedules", wish)
    assert made.status_code == 201, made.content

    (listed,) = program.get("jobs/flights/schedules").json()
    assert (listed["cron"], listed["zone"]) == (wish["cron"], wish["zone"])
    assert listed["blackouts"] == [wish["blackouts"]]
    assert listed["every_minutes"] is None
    assert program.post("jobs/flights/schedules", {}).status_code == 400


def test_rules_of_retention_are_set_as_a_whole(program):
    assert program.get("jobs/flights/retention").json()["keep_last"] is None
    program.post("jobs/flights/retention", {"keep_last": 3, "daily": 7}, method="put")
    program.post("jobs/flights/retention", {"daily": 5}, method="put")

    told = program.get("jobs/flights/retention").json()
    assert (told["keep_last"], told["daily"]) == (None, 5)


def test_an_operation_is_cancelled(program, running):
    operation = program.post("jobs/flights/savepoints").json()
    cancelled = program.post(f"operations/{operation['id']}/cancel", {"reason": "mistake"})

    assert cancelled.status_code == 202
    assert cancelled.json()["cancel_asked_at"] or cancelled.json()["state"] == "cancelled"


def test_a_setting_that_is_null_is_left_to_the_job_file(program, flights):
    address = "jobs/flights/settings"
    program.post(address, {"state_backend": "rocksdb", "parallelism": 2}, method="patch")
    told = program.post(address, {"state_backend": None}, method="patch").json()["settings"]
    assert (told["state_backend"], told["parallelism"]) == (None, 2)


def test_an_admins_program_looks_after_people_and_tokens(alice, bob, team):
    program = Caller(alice, "admin")
    program.post("teams/payments/members/bob", {"role": "operator"}, method="put")
    (told,) = program.get("teams").json()
    assert told["members"] == {"alice": "admin", "bob": "operator"}

    made = program.post("tokens", {"name": "ro", "scope": "read", "days": 1, "team": "payments"})
    text = made.json()["text"]
    assert text not in program.get("tokens").content.decode()
    address = f"tokens/{made.json()['token']['id']}"
    assert program.post(address, method="delete").status_code == 204
    other = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {text}"})
    assert "ro was revoked" in other.json()["detail"]


def test_a_weaker_program_makes_no_stronger_token(alice, team):
    wish = {"name": "more", "scope": "admin", "days": 1}
    answer = Caller(alice, "operate").post("tokens", wish)
    assert answer.status_code == 403
    assert "cannot issue one that may do more than itself" in answer.json()["detail"]


def test_a_rule_is_watched_and_its_alert_taken(program, flights):
    wish = {"team": "payments", "job": "flights", "measure": "restarts", "threshold": 3}
    rule = program.post("alert-rules", wish).json()
    Alert.objects.create(rule_id=rule["id"], job=flights, state="firing", since=NOW, seen_at=NOW)

    (alert,) = program.get("alerts", state="firing").json()["items"]
    assert (alert["measure"], alert["job"]) == ("restarts", "flights")
    taken = program.post(f"alerts/{alert['id']}/acknowledge").json()
    assert taken["acknowledged_by"] == "alice"
    assert program.post(f"alerts/{alert['id']}/acknowledge").status_code == 409
    assert program.post(f"alert-rules/{rule['id']}", method="delete").status_code == 204
    assert program.post("alert-rules", wish | {"measure": "mood"}).status_code == 422


def test_a_route_says_its_secret_once_and_its_address_never(alice, flights):
    program = Caller(alice, "admin")
    wish = {"team": "payments", "kind": "slack", "target": "https://hooks.slack.com/services/T/B/x"}
    made = program.post("alert-routes", wish)
    assert (made.status_code, made.json()["host"]) == (201, "hooks.slack.com")
    assert made.json()["secret"]

    (listed,) = program.get("alert-routes").json()["items"]
    assert listed == {name: one for name, one in made.json().items() if name != "secret"}
    assert "services" not in json.dumps(listed)
    assert program.post("alert-routes", wish | {"target": "http://x"}).status_code == 400
    assert program.post(f"alert-routes/{listed['id']}", method="delete").status_code == 204


def test_a_stopped_job_moves_to_another_cluster(program, flights):
    Cluster.objects.create(name="other", url="fake://other")
    moved = program.post("jobs/flights/move", {"cluster": "other", "reason": "more room"})
    assert (moved.status_code, moved.json()["cluster"]) == (200, "other")


def test_secrets_in_settings_are_struck_out(program, flights, alice):
    program.post("jobs/flights/settings", {"arguments": ["--token", "hunter2"]}, method="patch")
    flights.refresh_from_db()

    assert flights.settings["arguments"] == ["--token", "hunter2"]
    assert "hunter2" not in program.get("jobs/flights").content.decode()


def test_the_audit_log_is_filtered(program, flights, bob):
    program.send("jobs/flights/versions", file=job_file())
    found = program.get("audit", action="version", job="flights").json()["items"]
    assert [entry["action"] for entry in found] == ["version.add"]
    assert program.get("audit", since="yesterday").status_code == 422
    assert program.get("audit", since="2026-01-01T00:00:00").status_code == 422
    assert program.get("audit", since="2999-01-01T00:00:00Z").json()["items"] == []


def test_the_description_names_every_operation_once(client):
    told = client.get("/api/v1/openapi.json").json()
    calls = [call for methods in told["paths"].values() for call in methods.values()]
    names = [call["operationId"] for call in calls]

    assert len(names) == len(set(names)) > 25
    assert all(call["summary"] and call["description"] for call in calls)


def test_a_fault_is_told_with_the_id_of_its_request(program, settings):
    settings.HEADWATER_ARTIFACTS = "/proc/nowhere"
    answer = program.send("jobs/flights/versions", file=job_file())

    assert answer.status_code == 500
    assert answer.json()["request_id"] == answer["X-Request-Id"]
    assert "nowhere" not in answer.content.decode()
