"""How often a login may fail."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.access.errors import Refused
from controlplane.access.models import LoginFailures
from controlplane.access.throttle import (
    PER_ADDRESS,
    PER_NAME,
    WINDOW,
    begin_login,
    end_login,
)

NOW = timezone.now()


def fail(times, name="alice", address="10.0.0.1"):
    for _ in range(times):
        begin_login(name, address, NOW)


def test_after_five_failures_the_sixth_is_not_even_tried(db):
    fail(PER_NAME)
    with pytest.raises(Refused, match="5 in the last quarter of an hour; wait 15 min") as refused:
        begin_login("Alice ", "10.0.0.1", NOW)
    assert refused.value.status == 429


def test_others_are_not_held_up(db):
    fail(PER_NAME)
    begin_login("bob", "10.0.0.1", NOW)
    begin_login("alice", "10.0.0.2", NOW)


def test_an_address_that_tries_many_names_is_held_up(db):
    for number in range(PER_ADDRESS):
        fail(1, f"user-{number}")
    with pytest.raises(Refused):
        begin_login("bob", "10.0.0.1", NOW)


def test_an_office_that_logs_in_is_not_held_up(db):
    for number in range(PER_ADDRESS + 1):
        fail(1, f"user-{number}")
        end_login(f"user-{number}", "10.0.0.1")


def test_it_is_over_after_a_quarter_of_an_hour(db):
    fail(PER_NAME)
    with pytest.raises(Refused, match="wait 1 min"):
        begin_login("alice", "10.0.0.1", NOW + WINDOW - timedelta(seconds=1))
    begin_login("alice", "10.0.0.1", NOW + WINDOW)
    assert set(LoginFailures.objects.values_list("failures", flat=True)) == {1}


def test_who_gets_in_begins_anew(db):
    fail(PER_NAME)
    end_login("alice", "10.0.0.1")
    fail(PER_NAME)
    with pytest.raises(Refused):
        fail(1)


def test_the_page_says_it_in_one_sentence(client, alice):
    alice.set_password("correct horse")
    alice.save()
    wrong = {"username": "alice", "password": "wrong"}
    for _ in range(PER_NAME):
        page = client.post("/login/", wrong)
        assert page.status_code == 200
        assert "do not fit together" in page.content.decode()
    page = client.post("/login/", wrong | {"password": "correct horse"})
    assert page.status_code == 429
    assert "Too many logins failed" in page.content.decode()
    elsewhere = client.post(
        "/login/", wrong | {"password": "correct horse"}, REMOTE_ADDR="10.0.0.2"
    )
    assert elsewhere.url == "/jobs/"
