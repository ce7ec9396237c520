"""Every page: who may see it, what it shows, and how many queries it takes."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from controlplane.jobs.actions import create_job
from controlplane.live import topics
from controlplane.live.latest import latest_store

# Two queries belong to the session, the rest to the frame and the page.
PAGES = {
    "/jobs/": 13,
    "/changes/": 10,
    "/jobs/flights/": 17,
    "/jobs/flights/checkpoints/": 17,
    "/jobs/flights/savepoints/": 31,
    "/savepoints/": 22,
    "/savepoints/1/": 16,
    "/jobs/flights/exceptions/": 16,
    "/jobs/flights/batches/": 14,
    "/jobs/flights/metrics/": 13,
    "/jobs/flights/outputs/": 14,
    "/jobs/flights/versions/": 14,
    "/jobs/flights/replays/": 16,
    "/replays/": 8,
    "/replays/1/": 17,
    "/replays/new/": 6,
    "/replays/new/?job=flights": 16,
    "/replays/new/?job=flights&step=sinks": 15,
    "/replays/new/?job=flights&step=review": 16,
    "/cluster/": 6,
    "/alerts/": 11,
}
OF_THE_JOB = [page for page in PAGES if "flights" in page]


@pytest.fixture
def history(checkpoints, savepoint, replay, store):
    """A job with something on every page."""
    assert replay.name == "r-1"


def address(path, replay):
    path = path.replace(
        "/savepoints/1/", reverse("dashboard:savepoint", args=[replay.savepoint_id])
    )
    return path.replace("/replays/1/", reverse("dashboard:replay", args=[replay.pk]))


@pytest.mark.parametrize("path", PAGES)
def test_a_page_takes_as_many_queries_as_it_says(
    path, as_, alice, history, replay, django_assert_num_queries
):
    client = as_(alice)
    with django_assert_num_queries(PAGES[path]):
        response = client.get(address(path, replay))
    assert response.status_code == 200


def test_no_two_places_have_the_same_keys(as_, django_user_model):
    page = as_(django_user_model.objects.create_superuser("root")).get("/settings/")
    keys = re.findall('data-go="(.)"', page.content.decode())
    assert len(keys) == len(set(keys)) >= 10


@pytest.mark.parametrize("path", PAGES)
def test_a_viewer_sees_the_page_without_its_buttons(path, as_, bob, history, replay):
    response = as_(bob).get(address(path, replay))
    assert response.status_code == 200
    assert 'data-open="stop"' not in response.content.decode()


@pytest.mark.parametrize("path", OF_THE_JOB)
def test_a_stranger_cannot_tell_that_it_exists(path, as_, mallory, history):
    assert as_(mallory).get(path).status_code == 404


@pytest.mark.parametrize("path", PAGES)
def test_who_is_not_signed_in_is_asked_to(path, db):
    response = Client().get(path)
    assert response.status_code == 302
    assert response["Location"].startswith("/login/?next=")


def test_a_stranger_sees_an_empty_list(as_, mallory, run):
    page = as_(mallory).get("/jobs/").content.decode()
    assert "No jobs yet" in page
    assert "flights" not in page


def test_the_list_shows_state_and_version(as_, alice, run, store):
    page = as_(alice).get("/jobs/").content.decode()
    assert 'data-state="running"' in page
    assert "v1" in page


@pytest.mark.parametrize(
    ("state", "heading"),
    [("FAILED", "attention"), ("RESTARTING", "attention"), ("CANCELED", "stopped")],
)
def test_a_job_stands_under_the_heading_of_its_state(state, heading, as_, alice, run):
    type(run).objects.update(state=state)
    assert f'data-group="{heading}"' in as_(alice).get("/jobs/").content.decode()


def test_more_jobs_take_no_more_queries(as_, alice, team, history, django_assert_num_queries):
    for name in ("orders", "clicks", "sensors"):
        create_job(name, team, alice, "job.py", b"pass")
    client = as_(alice)
    with django_assert_num_queries(PAGES["/jobs/"]):
        assert client.get("/jobs/").content.decode().count("<tbody") > 4


def test_a_job_that_needs_attention_says_why(as_, alice, run):
    type(run).objects.update(state="FAILED", failure="disk is full: got 0 bytes; free some")
    page = as_(alice).get("/jobs/").content.decode()
    assert "Disk is full: got 0 bytes; free some." in page


def test_the_overview_draws_the_plan_and_lists_its_operators(as_, alice, run, store):
    page = as_(alice).get("/jobs/flights/").content.decode()
    assert '"chain": ["flights", "daily.partial"]' in page
    assert '{"source": "a1", "target": "b2", "ship": "hash"}' in page
    assert 'data-b="job.' in page


def test_a_banner_says_why_a_job_restarts(as_, alice, run, store):
    type(run).objects.update(state="RESTARTING", failure="worker 2 was lost")
    page = as_(alice).get("/jobs/flights/").content.decode()
    assert "Restarting from the last checkpoint." in page
    assert "Worker 2 was lost." in page


def test_the_checkpoint_page_shows_the_failure_of_each(as_, alice, checkpoints):
    page = as_(alice).get("/jobs/flights/checkpoints/").content.decode()
    assert "Checkpoint 19 expired." in page


def test_the_catalogue_shows_event_time_and_what_uses_a_savepoint(as_, alice, replay):
    page = as_(alice).get("/jobs/flights/savepoints/").content.decode()
    assert "14 Mar 2013 05:07" in page
    assert "before version 2" in page
    assert "r-1" in page


def test_text_of_people_is_text_everywhere(as_, alice, run, savepoint, store):
    evil = "<img src=x onerror=alert(1)></script>"
    type(savepoint).objects.update(label=evil)
    type(run).objects.update(state="FAILED", failure=evil, plan={"nodes": [node(evil)]})
    for path in ("/jobs/", "/jobs/flights/", "/jobs/flights/savepoints/"):
        page = as_(alice).get(path).content.decode()
        assert "<img" not in page
        assert page.count("</script>") == page.count("<script")


def node(name):
    return {"id": "x", "parallelism": 1, "description": name}


def test_no_page_carries_a_handler_or_a_style_of_its_own(as_, alice, history, replay):
    for path in PAGES:
        page = as_(alice).get(address(path, replay)).content.decode()
        assert " style=" not in page
        assert " onclick=" not in page
        assert "hx-on" not in page


def test_an_unknown_page_says_so(as_, alice):
    response = as_(alice).get("/no/such/page/")
    assert response.status_code == 404
    assert "There is no such page" in response.content.decode()


def test_a_job_that_runs_and_ails_is_degraded_and_says_since_when(as_, alice, run, store):
    type(run).objects.update(state="RUNNING")
    why = {"why": "checkpoints fail: expired", "why_ms": 1_796_000_000_000, "state": "RUNNING"}
    fleet = topics.parse(topics.FLEET)
    latest_store().merge(fleet, {str(run.job_id): why | {"delay_ms": 90_000, "goal_ms": 60_000}})
    page = as_(alice).get("/jobs/").content.decode()
    assert 'data-state="running" data-shown="degraded" data-group="attention"' in page
    assert "Checkpoints fail: expired." in page
    assert '<svg class="bul" aria-hidden="true"><rect class="warn" width="75%"' in page
    assert "1 degraded" in page
    latest_store().forget(fleet)


def test_by_team_each_team_is_a_heading(as_, alice, run, store):
    page = as_(alice).get("/jobs/?group=team").content.decode()
    assert 'data-head="payments"' in page
    assert 'data-under="payments"' in page
