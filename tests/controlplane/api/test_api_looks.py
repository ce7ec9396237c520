"""What the API tells of a job beside its rows: dry runs, stray folders, contents, figures."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.tokens import issue_token
from controlplane.audit.models import AuditEntry
from controlplane.backends.fake import PLAN
from controlplane.jobs.models import RunFailure
from controlplane.operations.models import Operation
from controlplane.snapshots.models import Checkpoint, Savepoint, SavepointPolicy, StrayFolder
from controlplane.snapshots.schedule_actions import add_schedule

NOW = timezone.now()


class Program:
    """A program with a token."""

    def __init__(self, owner):
        _, text = issue_token(owner, "ci", "operate", 30, None, NOW)
        self.headers = {"Authorization": f"Bearer {text}"}

    def get(self, path, status=200, **query):
        answer = Client().get(f"/api/v1/{path}", query, headers=self.headers)
        assert answer.status_code == status, answer.content
        return answer.json()

    def send(self, method, path):
        client = Client()
        headers = self.headers
        return getattr(client, method)(
            f"/api/v1/{path}", "{}", content_type="application/json", headers=headers
        )


@pytest.fixture
def program(alice, flights):
    return Program(alice)


def savepoint(job, days, **more):
    taken = {"status": "completed", "origin": "scheduled", "location": f"/nowhere/{days}"}
    found = Savepoint.objects.create(job=job, taken_at=NOW - timedelta(days=days), **taken | more)
    created = NOW - timedelta(days=days)
    Savepoint.objects.filter(pk=found.pk).update(created_at=created)
    return found.pk


def all_pages(program, path, **query):
    found, cursor = [], ""
    while cursor is not None:
        told = program.get(path, limit=1, cursor=cursor, **query)
        found += told["items"]
        cursor = told["next"]
    return found


def test_a_dry_run_of_rules_says_what_becomes_of_each_savepoint_and_why(program, flights):
    newest, pinned, old = (
        savepoint(flights, days, pinned=days == 2, verdict="whole") for days in (1, 2, 3)
    )
    told = program.get("jobs/flights/retention/preview", keep_last=1, limit=1)
    rows = all_pages(program, "jobs/flights/retention/preview", keep_last=1)

    assert (told["kept"], told["doomed"]) == (2, 1)
    assert [(row["savepoint"], row["keep"], row["reason"]) for row in rows] == [
        (newest, True, "flights is stopped and starts from it"),
        (pinned, True, "pinned"),
        (old, False, "no rule keeps it"),
    ]
    assert not SavepointPolicy.objects.exists()


def test_a_rule_of_retention_that_cannot_be_is_refused(program):
    told = program.get("jobs/flights/retention/preview", 400, keep_last=0)
    assert told["detail"].startswith("keep_last must be between 1 and 10,000: got 0")


def test_a_rule_is_tried_on_the_last_days_before_it_is_made(program, running):
    run = running.runs.get()
    for hours, minutes in ((5, 0), (2, 0), (2, 1), (2, 2)):
        at = NOW - timedelta(hours=hours, minutes=minutes)
        RunFailure.objects.create(run=run, at=at, restarted_at=at, name="Boom")
    asked = {"team": "payments", "measure": "restarts", "threshold": 1}
    rows = all_pages(program, "alert-rules/preview", **asked)

    assert [row["job"] for row in rows] == ["flights"] * 2
    assert rows[0]["from_ms"] > rows[1]["from_ms"]
    assert program.get("alert-rules")["items"] == []


def test_strays_are_listed_and_cleared(program, flights):
    for place, is_complete in (("a", False), ("b", True)):
        StrayFolder.objects.create(
            cluster=flights.cluster,
            job=flights,
            location=f"/nowhere/{place}",
            is_complete=is_complete,
            size_bytes=7,
            changed_at=NOW,
            found_at=NOW,
        )
    torn, whole = all_pages(program, "jobs/flights/strays")

    assert (torn["location"], torn["size_bytes"]) == ("/nowhere/a", 7)
    assert program.send("delete", f"strays/{torn['id']}").status_code == 204
    refused = program.send("delete", f"strays/{whole['id']}")
    assert (refused.status_code, StrayFolder.objects.count()) == (409, 1)
    assert "adopt it" in refused.json()["detail"]


def test_a_scan_tells_when_it_was_and_whose_files_are_gone(program, flights):
    gone = savepoint(flights, 1, missing_since=NOW)

    assert program.get("jobs/flights/savepoints/scan")["at"] is None
    told = program.send("post", "jobs/flights/savepoints/scan").json()
    assert told["at"]
    assert told["missing"] == [gone]


def test_the_catalogue_is_searched_over_all_jobs(program, flights):
    good, bad = savepoint(flights, 1, label="nightly"), savepoint(flights, 2, verdict="damaged")

    assert [one["savepoint"]["id"] for one in all_pages(program, "savepoints")] == [good, bad]
    (found,) = program.get("savepoints", health="damaged")["items"]
    assert (found["savepoint"]["id"], found["usable"], found["keep"]) == (bad, False, True)
    (named,) = program.get("savepoints", text="night")["items"]
    assert named["savepoint"]["id"] == good


def test_rows_of_a_savepoint_are_told_and_who_read_them_is_known(program, running, drive):
    drive_savepoint(program, drive)
    (one,) = program.get("jobs/flights/savepoints")["items"]
    operator = program.get(f"savepoints/{one['id']}")["contents"]["operators"][0]
    asked = {"operator": operator["uid"], "state": operator["states"][0]["name"]}

    told = program.get(f"savepoints/{one['id']}/rows", **asked)
    assert set(told["columns"])
    assert told["rows"]
    assert AuditEntry.objects.filter(action="savepoint.read").count() == 1
    wrong = program.get(f"savepoints/{one['id']}/rows", 400, **asked, key="carrier")
    assert wrong["detail"] == "key must name columns: got carrier; e.g. carrier=UA, day=3"


def test_two_savepoints_are_compared(program, running, drive):
    drive_savepoint(program, drive)
    drive_savepoint(program, drive)
    right, left = (one["id"] for one in program.get("jobs/flights/savepoints")["items"])

    told = program.get(f"savepoints/{left}/diff/{right}")
    assert (told["left"], told["right"]) == (left, right)
    assert {one["outcome"] for one in told["changes"]} <= {"same", "resized"}
    assert told["rows"]["failure"] == ""


def drive_savepoint(program, drive):
    answer = program.send("post", "jobs/flights/savepoints").json()
    drive(Operation.objects.get(pk=answer["id"]))


def test_failures_are_told_page_by_page_with_their_traces(program, running):
    run = running.runs.get()
    for minutes in (1, 2):
        at = NOW - timedelta(minutes=minutes)
        RunFailure.objects.create(run=run, at=at, name="Boom", trace="where")

    newest, oldest = all_pages(program, "jobs/flights/failures")
    assert (newest["error"], newest["trace"], newest["version"]) == ("Boom", "where", 1)
    assert newest["at"] > oldest["at"]
    assert program.get("jobs/flights/failures", text="quiet")["items"] == []


def test_changes_of_the_fleet_are_told_page_by_page(program, running):
    savepoint(running, 0)

    titles = [one["title"] for one in all_pages(program, "changes")]
    assert sorted(titles)[0].startswith("flights savepoint")
    assert sorted(titles)[1] == "flights v1 started"


def test_a_graph_names_its_operators_and_one_of_them_its_subtasks(program, running):
    told = program.get("jobs/flights/operators")
    assert [node["id"] for node in told["nodes"]] == [one["id"] for one in PLAN["nodes"]]
    one = program.get(f"jobs/flights/operators/{told['nodes'][0]['id']}")
    assert (one["items"], bool(one["away"])) == ([], True)


def test_a_checkpoint_says_why_it_failed(program, running):
    run = running.runs.get()
    for number in (1, 2):
        Checkpoint.objects.create(
            run=run,
            engine_checkpoint_id=number,
            status="failed",
            trigger_at=NOW,
            failure="too slow",
            detail={"reason": "expired"},
        )
    told = program.get(f"jobs/flights/checkpoints/{run.pk}/2")
    assert (told["failure"], told["reason"], told["failed_in_a_row"]) == ("too slow", "Expired", 2)
    assert program.get(f"jobs/flights/checkpoints/{run.pk}/3", 404)["code"] == "not_found"


def test_settings_say_who_chose_them(program, flights):
    told = {one["name"]: one for one in program.get("jobs/flights/configuration")["settings"]}
    assert told["state_backend"]["source"] == "job file"
    assert told["parallelism"]["waits"] is False


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("statistics", "the job flights does not run"),
        ("metrics/names", "the job does not run"),
        ("outputs", "the job was never started"),
    ],
)
def test_what_is_not_known_says_why(program, path, reason):
    assert program.get(f"jobs/flights/{path}")["reason"] == reason


def test_a_schedule_says_when_it_runs_next(program, flights):
    add_schedule(flights, flights.team.memberships.first().user, 30)
    (told,) = program.get("jobs/flights/schedules")
    assert len(told["next_runs"]) == 5
    assert told["next_runs"][0] == told["next_run_at"]
