"""An operator's page: its subtasks as the engine tells them, sorted, in pages, and by place."""

from __future__ import annotations

import pytest

from controlplane.backends import asked, subtasks
from controlplane.jobs.models import Run
from controlplane.live import topics
from controlplane.live.latest import latest_store
from engine.rest.app import create_app
from seeded_client import URL, InProcess, client_of
from seeded_engine import SeededEngine
from seeded_jobs import MANY, MANY_OPS, ORDERS

JOIN, PER_USER = ORDERS[2], MANY_OPS[1]


@pytest.fixture(scope="module")
def seeded():
    """An engine behind its routes, without a socket."""
    return InProcess(create_app(SeededEngine()))


@pytest.fixture
def join(run, seeded, monkeypatch):
    """The live run as one of the seeded jobs; gives what makes it so."""
    client = client_of(seeded)
    for module in (asked, subtasks):
        monkeypatch.setattr(module, "client_of", lambda address: client)
    asked.forget()
    subtasks._sizes.cache_clear()
    run.cluster.url = URL
    run.cluster.save()

    def as_(job_id, op):
        node = {
            "id": op.id,
            "parallelism": op.par,
            "description": op.name,
            "inputs": [{"id": "up"}],
        }
        up = {"id": "up", "parallelism": 1, "description": "up"}
        after = {"id": "down", "parallelism": 1, "description": "x", "inputs": [{"id": op.id}]}
        Run.objects.update(engine_job_id=job_id * 32, plan={"nodes": [up, node, after]})
        topic = topics.parse(topics.job(run.job_id))
        latest_store().merge(topic, {"ckpt": {"id": 18_348}, "event_ms": None, "delay_ms": None})
        return f"/jobs/flights/op/{op.id}/"

    yield as_
    latest_store().forget(topics.parse(topics.job(run.job_id)))


def test_every_subtask_has_its_rates_its_load_and_its_state(as_, alice, join):
    found = as_(alice).get(join("1", JOIN) + "subtasks.json").json()
    assert found["index"] == list(range(32))
    assert found["busy"][11] == 98
    assert found["busy"][3] == 33
    assert found["rate"][11] == pytest.approx(JOIN.rows_in * 4.1 / 32, abs=0.1)
    assert found["bytes"][11] == int(JOIN.state * 4.1 / 32)
    assert found["host"][11] == "tm-06"
    assert found["away"] == ""


def test_the_table_is_sorted_by_what_the_address_says(as_, alice, join):
    page = as_(alice).get(join("1", JOIN) + "?sort=-rate").content.decode()
    assert page.index('data-i="11"') < page.index('data-i="5"') < page.index('data-i="0"')
    assert 'aria-sort="descending"' in page


def test_of_1600_subtasks_a_page_shows_200_and_says_so(as_, alice, join):
    address = join("3", PER_USER)
    client = as_(alice)
    last = client.get(address + "?page=8").content.decode()
    assert last.count("data-i=") == 200
    assert f'data-i="{MANY - 1}"' in last
    assert "page 8 of 8" in last
    assert "page 8 of 8" in client.get(address + "?page=99").content.decode()


def test_who_looks_within_a_second_shares_a_look(as_, alice, bob, join, seeded):
    address = join("3", PER_USER) + "subtasks.json"
    as_(alice).get(address)
    asked = len(seeded.asked)
    as_(bob).get(address)
    assert len(seeded.asked) == asked


def test_an_engine_that_is_away_is_said_and_nothing_is_invented(as_, alice, join):
    address = join("9", JOIN)
    found = as_(alice).get(address + "subtasks.json").json()
    assert found["index"] == []
    assert "not found" in found["away"]
    assert "No subtask is known" in as_(alice).get(address).content.decode()


def test_a_job_that_has_ended_has_no_subtasks(as_, alice, join):
    address = join("1", JOIN)
    Run.objects.update(state="CANCELED")
    assert "The job does not run" in as_(alice).get(address).content.decode()


def test_an_operator_that_the_plan_does_not_have_is_not_found(as_, alice, run):
    assert as_(alice).get("/jobs/flights/op/nobody/").status_code == 404
    assert as_(alice).get("/jobs/flights/op/a1/").status_code == 200
