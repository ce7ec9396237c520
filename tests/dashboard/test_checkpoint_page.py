"""The page of checkpoints: the pinned one, its operators and subtasks, and why it failed."""

from __future__ import annotations

import pytest

from controlplane.backends import checkpoint_parts
from controlplane.jobs.models import Run
from controlplane.snapshots.models import Checkpoint
from engine.rest.app import create_app
from seeded_client import URL, InProcess, client_of
from seeded_engine import SeededEngine
from seeded_jobs import ORDERS

NODES = [{"id": op.id, "parallelism": op.par, "description": op.name} for op in ORDERS]


@pytest.fixture(scope="module")
def seeded():
    return InProcess(create_app(SeededEngine()))


@pytest.fixture
def orders(run, checkpoints, seeded, monkeypatch):
    """The checkpoints are those of a job that the seeded engine runs."""
    client = client_of(seeded)
    monkeypatch.setattr(checkpoint_parts, "client_of", lambda url: client)
    checkpoint_parts._ended.clear()
    run.cluster.url = URL
    run.cluster.save()
    Run.objects.update(engine_job_id="1" * 32, plan={"nodes": NODES})
    for row in checkpoints:  # the seeded engine has them from 18301 on
        row.engine_checkpoint_id += 18_300
        row.detail = {"reason": "expired"} if row.status == "failed" else {}
    Checkpoint.objects.bulk_update(checkpoints, ["engine_checkpoint_id", "detail"])
    return run


@pytest.fixture
def page(as_, alice):
    def get(query=""):
        response = as_(alice).get(f"/jobs/flights/checkpoints/{query}")
        assert response.status_code == 200
        return response.content.decode()

    return get


def test_the_newest_one_is_looked_into_until_one_is_pinned(page, orders):
    assert "<h2>Checkpoint 18320</h2>" in page()
    pinned = page(f"?id={orders.pk}-18305")
    assert "<h2>Checkpoint 18305</h2>" in pinned
    assert "Follow newest" in pinned


def test_every_operator_shows_its_longest_phases(page, orders):
    shown = page(f"?id={orders.pk}-18305")
    assert "163 of 163 subtasks" in shown
    row = shown.split("enrich-join</a>")[1].split("</tr>")[0]
    assert "32/32" in row
    assert '245<span class="u">GiB</span>' in row


def test_the_slowest_subtasks_stand_on_one_clock(page, orders):
    clock = page(f"?id={orders.pk}-18305").split('<div class="clock">')[1]
    assert clock.count("<li>") == 24
    first = clock.split("<li>")[1]
    assert "start delay 390 ms, alignment 44 ms, sync 4 ms, async" in first


def test_one_operator_can_be_looked_at_alone(page, orders):
    fx_rates = ORDERS[5]
    clock = page(f"?id={orders.pk}-18305&op={fx_rates.id}").split('<div class="clock">')[1]
    assert clock.count("<li>") == 1
    assert "fx-rates" in clock


def test_a_failed_one_says_why_in_a_typed_word_and_which_subtasks_are_missing(page, orders):
    Checkpoint.objects.filter(engine_checkpoint_id__gte=18_319).update(
        status="failed", failure="checkpoint expired: not every subtask acknowledged in time"
    )
    shown = page(f"?id={orders.pk}-18320")
    assert "<b>Expired.</b>" not in shown  # its own row says nothing of a reason
    assert "2 in a row have failed." in shown
    assert "not from 8, 9, 10, 11, 12, 13, 14, 15" in shown
    assert "<b>Expired.</b>" in page(f"?id={orders.pk}-18319")


def test_what_the_engine_has_forgotten_is_said(page, orders):
    Checkpoint.objects.filter(engine_checkpoint_id=18_301).update(engine_checkpoint_id=7)
    shown = page(f"?id={orders.pk}-7")
    assert "<h2>Checkpoint 7</h2>" in shown
    assert "of this one the totals are left" in shown


@pytest.mark.parametrize("query", ["?id=7-99999999", "?id=99-18305", "?id=x", "?id=1-2-3", "?id=-"])
def test_an_address_that_means_nothing_breaks_nothing(query, page, orders):
    assert "Checkpoint" in page(query)


def test_a_checkpoint_that_has_ended_is_asked_for_once(page, orders, seeded):
    address = f"?id={orders.pk}-18306"
    page(address)
    asked = [path for path in seeded.asked if "/18306" in path]
    page(address)
    assert [path for path in seeded.asked if "/18306" in path] == asked


def test_how_checkpoints_are_taken_is_what_the_engine_says(page, orders):
    shown = page()
    assert "<dt>Given up after</dt>" in shown
    assert "file:///data/checkpoints" in shown
    assert "exactly once, aligned barriers" in shown


def test_quantiles_are_of_completed_ones(page, checkpoints):
    Checkpoint.objects.filter(status="failed").update(duration_ms=600_000)
    assert "10m" not in page().split('id="last"')[0]


def test_a_job_that_has_ended_still_shows_its_last_checkpoint(as_, alice, run, checkpoints):
    newest = Checkpoint.objects.filter(run=run, status="completed").order_by("trigger_at").last()
    Checkpoint.objects.filter(pk=newest.pk).update(duration_ms=1_234, size_bytes=2_048)
    type(run).objects.update(state="FAILED", failure="disk is full")
    shown = as_(alice).get("/jobs/flights/").content.decode()
    assert "took 1.2 s, 2.00 KiB" in shown
    assert "does not run" in shown
