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
    check_may_try,
    count_failure,
    forget_failures,
)

NOW = timezone.now()


def fail(times, name="alice", address="10.0.0.1"):
    for _ in range(times):
        count_failure(name, address, NOW)


def test_after_five_failures_the_sixth_is_not_even_tried(db):
    fail(PER_NAME - 1)
    check_may_try("alice", "10.0.0.1", NOW)
    fail(1)
    with pytest.raises(Refused, match="5 in the last quarter of an hour; wait 15 min") as refused:
        check_may_try("Alice ", "10.0.0.1", NOW)
    assert refused.value.status == 429


def test_others_are_not_held_up(db):
    fail(PER_NAME)
    check_may_try("bob", "10.0.0.1", NOW)
    check_may_try("alice", "10.0.0.2", NOW)


def test_an_address_that_tries_many_names_is_held_up(db):
    for number in range(PER_ADDRESS):
        fail(1, f"user-{number}")
    with pytest.raises(Refused):
        check_may_try("bob", "10.0.0.1", NOW)


def test_it_is_over_after_a_quarter_of_an_hour(db):
    fail(PER_NAME)
    with pytest.raises(Refused, match="wait 1 min"):
        check_may_try("alice", "10.0.0.1", NOW + WINDOW - timedelta(seconds=1))
    check_may_try("alice", "10.0.0.1", NOW + WINDOW)
    count_failure("alice", "10.0.0.1", NOW + WINDOW)
    assert set(LoginFailures.objects.values_list("failures", flat=True)) == {1}


def test_who_gets_in_begins_anew(db):
    fail(PER_NAME - 1)
    forget_failures("alice", "10.0.0.1")
    fail(PER_NAME - 1)
    check_may_try("alice", "10.0.0.1", NOW)


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
