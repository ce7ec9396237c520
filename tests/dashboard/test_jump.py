"""The search box: what it finds, for whom, and how many queries that takes."""

from __future__ import annotations

import pytest

from controlplane.jobs.actions import create_job


@pytest.fixture
def found(as_):
    """Names that somebody finds with a text."""

    def names(user, text):
        answer = as_(user).get("/jump.json", {"q": text}).json()
        return [one["name"] for one in answer["found"]]

    return names


def test_jobs_operators_savepoints_and_replays_are_found_by_a_part_of_their_name(
    found, alice, run, savepoint, replay
):
    assert found(alice, "light") == ["flights", "flights@r-1", "flights"]
    assert found(alice, "daily.p") == ["daily.partial"]
    assert found(alice, "Before V") == [f"{savepoint.pk} before version 2"]


def test_an_operator_leads_to_its_page(as_, alice, run):
    (one,) = as_(alice).get("/jump.json", {"q": "partial"}).json()["found"]
    assert one["url"] == "/jobs/flights/op/a1/"
    assert as_(alice).get(one["url"]).status_code == 200


def test_without_a_text_jobs_and_open_replays_are_offered(found, alice, replay):
    assert found(alice, "") == ["flights", "flights@r-1"]


def test_a_stranger_finds_nothing(found, mallory, run, savepoint, replay):
    assert [found(mallory, text) for text in ("", "flights", "before")] == [[], [], []]


def test_more_jobs_take_no_more_queries(as_, alice, team, run, django_assert_num_queries):
    client = as_(alice)
    with django_assert_num_queries(6):
        client.get("/jump.json", {"q": "flights"})
    for number in range(20):
        create_job(f"flights-{number}", team, alice, "job.py", b"pass")
    with django_assert_num_queries(6):
        assert len(client.get("/jump.json", {"q": "flights"}).json()["found"]) <= 16
