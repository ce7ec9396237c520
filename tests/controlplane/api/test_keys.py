"""Requests that are sent again with their idempotency key."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import close_old_connections, connection
from django.test import Client
from django.utils import timezone

from controlplane.access.models import ApiToken, Membership, Role
from controlplane.access.tokens import issue_token
from controlplane.api.keys import KEPT, forget_answers
from controlplane.api.models import KeptAnswer
from controlplane.backends.models import Cluster
from controlplane.jobs.models import JobVersion
from controlplane.operations.models import Operation
from people import JOB_FILE

NOW = timezone.now()


class Caller:
    """A program with a token, which sends keys."""

    def __init__(self, owner, scope="admin"):
        _, text = issue_token(owner, "ci", scope, 30, None, NOW)
        self.headers = {"Authorization": f"Bearer {text}"}

    def post(self, path, body=None, key=""):
        headers = self.headers | {"Idempotency-Key": key}
        client = Client(raise_request_exception=False)
        body = json.dumps(body or {})
        return client.post(f"/api/v1/{path}", body, "application/json", headers=headers)

    def send(self, path, key, content=JOB_FILE):
        form = {"file": SimpleUploadedFile("flights.py", content), "note": "faster"}
        headers = self.headers | {"Idempotency-Key": key}
        return Client().post(f"/api/v1/{path}", form, headers=headers)


@pytest.fixture
def program(alice, flights):
    return Caller(alice)


def test_the_same_key_is_the_same_operation(program, running):
    first = program.post("jobs/flights/savepoints", key="night-1")
    again = program.post("jobs/flights/savepoints", key="night-1")
    other = program.post("jobs/flights/savepoints", key="night-2")

    assert first.json() == again.json()
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert (again.status_code, other.status_code) == (202, 409)
    assert Operation.objects.filter(kind="savepoint").count() == 1


def test_keys_of_two_people_do_not_meet(program, running, bob, drive):
    Membership.objects.filter(user=bob).update(role=Role.OPERATOR)
    mine = program.post("jobs/flights/savepoints", key="night").json()
    drive(Operation.objects.get(pk=mine["id"]))

    theirs = Caller(bob).post("jobs/flights/savepoints", key="night").json()
    assert theirs["id"] != mine["id"]


def test_a_file_that_is_sent_again_makes_one_version(program):
    first, again = (program.send("jobs/flights/versions", "up-1") for _ in range(2))
    changed = program.send("jobs/flights/versions", "up-1", JOB_FILE + b"# other\n")

    assert first.json() == again.json()
    assert JobVersion.objects.count() == 2
    assert (changed.status_code, changed.json()["code"]) == (422, "key_reused")
    assert "key up-1 was sent with another request: use a new one" in changed.json()["detail"]


@pytest.mark.parametrize("key", ["x" * 65, "ключ", " "])
def test_a_key_that_cannot_be_one_is_refused_before_anything_is_done(program, key):
    answer = program.post("jobs/flights/savepoints", key=key)

    assert answer.status_code == 400
    assert "an idempotency key has 1 to 64 printable characters" in answer.json()["detail"]


def test_what_was_refused_may_be_sent_again_with_its_key(program, running, drive):
    Operation.objects.update(state="running")
    busy = program.post("jobs/flights/savepoints", key="night")
    Operation.objects.update(state="succeeded")
    taken = program.post("jobs/flights/savepoints", key="night")

    assert (busy.status_code, taken.status_code) == (409, 202)


def test_a_crash_before_the_answer_is_kept_leaves_nothing(program, monkeypatch, settings):
    monkeypatch.setattr(KeptAnswer, "save", broken_save)
    with pytest.raises(OSError, match="killed"):
        program.send("jobs/flights/versions", "up-1")
    monkeypatch.undo()

    assert (JobVersion.objects.count(), KeptAnswer.objects.count()) == (1, 0)
    assert program.send("jobs/flights/versions", "up-1").json()["number"] == 2


def broken_save(kept, **options):
    if options.get("update_fields"):
        raise OSError("killed")
    return super(KeptAnswer, kept).save(**options)


def test_a_token_in_an_answer_is_not_in_the_database(program):
    body = {"name": "deploys", "scope": "read", "days": 30}
    first, again = (program.post("tokens", body, key="token-1") for _ in range(2))

    text = first.json()["text"]
    assert again.json()["text"] == text
    assert ApiToken.objects.count() == 2
    (kept,) = KeptAnswer.objects.values()
    assert text[3:] not in repr(kept)
    assert "token-1" not in repr(kept)


def test_an_answer_is_kept_for_a_day_and_then_forgotten(program):
    program.send("jobs/flights/versions", "up-1")
    KeptAnswer.objects.update(kept_until=timezone.now())

    assert program.send("jobs/flights/versions", "up-1").json()["number"] == 3
    assert KeptAnswer.objects.get().kept_until - timezone.now() > KEPT - timedelta(minutes=1)
    assert forget_answers() == 0
    KeptAnswer.objects.update(kept_until=timezone.now())
    assert forget_answers() == 1


def test_what_an_engine_refused_leaves_its_key_free(program, flights, alice):
    alice.is_superuser = True
    alice.save()
    Cluster.objects.filter(pk=flights.cluster_id).update(url="http://127.0.0.1:9")
    path = f"clusters/{flights.cluster.name}/task-managers"
    answers = [program.post(path, key="tm-1") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [502, 502]
    assert not KeptAnswer.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_at_the_same_time_it_is_done_once(program):
    if connection.vendor == "sqlite":
        pytest.skip("SQLite of the tests is in the memory of one connection")

    def send(_):
        answer = program.send("jobs/flights/versions", "up-1")
        close_old_connections()
        connection.close()
        return answer.json()

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(send, range(4)))
    assert answers == [answers[0]] * 4
    assert JobVersion.objects.count() == 2


def test_every_call_that_changes_something_describes_the_header(client):
    told = client.get("/api/v1/openapi.json").json()
    for path, methods in told["paths"].items():
        for method, call in methods.items():
            named = [one["name"] for one in call.get("parameters", [])]
            assert ("Idempotency-Key" in named) == (method != "get"), (method, path)
