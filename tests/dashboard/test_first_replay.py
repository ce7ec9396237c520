"""The page of the demo's flights leads to a first replay, one step at a time."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest

from controlplane.audit.models import AuditEntry
from controlplane.jobs.actions import add_version

EXAMPLES = Path(__file__).parents[2] / "examples"
PATH = "/jobs/flights/versions/upload/corrected/"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def demo(run, alice, store):
    """The running job, with the demo's file as its newest version."""
    content = (EXAMPLES / "flights.py").read_bytes()
    return add_version(run.job, alice, "flights.py", content)


@pytest.fixture
def page(as_, alice):
    """The overview, as text."""
    return lambda: unescape(as_(alice).get("/jobs/flights/").content.decode())


def test_each_step_suggests_the_next_until_there_is_a_replay(as_, alice, demo, page, request):
    assert "Step 1 of 4: take a savepoint" in page()
    request.getfixturevalue("savepoint")
    assert f'action="{PATH}"' in page()
    assert as_(alice).post(PATH, headers=HTMX)["HX-Redirect"] == "/jobs/flights/"
    assert '<a class="btn sm" href="/replays/new/?job=flights&version=3">' in page()
    request.getfixturevalue("replay")
    assert "Try a first replay" not in page()


def test_the_demos_second_version_is_uploaded_once_and_noted(as_, alice, demo):
    browser = as_(alice)
    assert browser.post(PATH, headers=HTMX).status_code == 200
    version = demo.job.versions.get(number=3)
    assert version.artifact.read_bytes() == (EXAMPLES / "flights_v2.py").read_bytes()
    assert AuditEntry.objects.filter(action="version.add", actor=alice).count() == 2
    assert browser.post(PATH, headers=HTMX).status_code == 409
    assert demo.job.versions.count() == 3


def test_who_may_only_look_gets_no_suggestion(as_, bob, demo):
    assert "Try a first replay" not in as_(bob).get("/jobs/flights/").content.decode()
    assert as_(bob).post(PATH, headers=HTMX).status_code == 403


def test_a_job_of_the_same_name_is_left_alone(as_, alice, run, store, page):
    assert "Try a first replay" not in page()
    refused = as_(alice).post(PATH, headers=HTMX)
    assert refused.status_code == 409
    assert "not the demo's flights.py: upload a file yourself" in unescape(refused.content.decode())
