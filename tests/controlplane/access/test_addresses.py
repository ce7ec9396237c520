"""What the pages' addresses let alice, bob, mallory and nobody do."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from controlplane.operations.models import Operation
from controlplane.snapshots.models import SavepointSchedule


def savepoints(job) -> str:
    return reverse("dashboard:savepoints", args=[job.name])


def take(job) -> str:
    return reverse("dashboard:take", args=[job.name])


def test_a_page_of_a_job_is_for_its_team(running, client, alice, bob, mallory):
    for person, status in ((alice, 200), (bob, 200), (mallory, 404)):
        client.force_login(person)
        assert client.get(savepoints(running)).status_code == status


def test_nobody_is_sent_to_the_login_page(running, client):
    answer = client.get(savepoints(running))

    assert answer.status_code == 302
    assert answer.url.startswith("/login/")


def test_only_an_operator_takes_a_savepoint(running, client, alice, bob, mallory):
    for person, status in ((mallory, 404), (bob, 403)):
        client.force_login(person)
        assert client.post(take(running)).status_code == status
    assert not Operation.objects.filter(kind="savepoint").exists()

    client.force_login(alice)
    assert client.post(take(running), {"label": "one"}).status_code in {200, 202, 302}
    assert Operation.objects.get(kind="savepoint").actor == alice


def test_a_page_of_another_site_cannot_post(running, alice):
    careless = Client(enforce_csrf_checks=True)
    careless.force_login(alice)

    assert careless.post(take(running)).status_code == 403
    assert not Operation.objects.filter(kind="savepoint").exists()


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "abc", ""])
def test_an_interval_that_makes_no_sense_is_refused_with_a_sentence(
    running, client, alice, minutes
):
    client.force_login(alice)
    address = reverse("dashboard:add_schedule", args=[running.name])
    answer = client.post(address, {"every_minutes": minutes})

    assert answer.status_code == 400
    assert not SavepointSchedule.objects.exists()


def test_every_page_carries_the_policy_and_no_frame(running, client, alice):
    client.force_login(alice)
    answer = client.get("/jobs/")

    assert "script-src 'self' 'nonce-" in answer["Content-Security-Policy"]
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["X-Request-Id"]
