"""What changed in the fleet: events of all kinds, for those who may see the jobs."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.backends.sightings import FailureSighting
from controlplane.jobs.failures import FailureNotes
from controlplane.metrics.line_protocol import Point, tags_of
from controlplane.metrics.store import ENGINE
from controlplane.moments import epoch_ms, now_ms
from controlplane.snapshots.models import Checkpoint


@pytest.fixture
def happened(run, savepoint, store):
    """A start, a savepoint, a failed checkpoint, a restart an hour ago, and one of last week."""
    now = timezone.now()
    Checkpoint.objects.create(
        run=run, engine_checkpoint_id=7, status="failed", trigger_at=now, failure="it expired"
    )
    failures = [
        FailureSighting(epoch_ms(now - timedelta(hours=ago)), name, "worker 2 was lost", "")
        for ago, name in ((1, "WorkerLost"), (100, "LongAgo"))
    ]
    FailureNotes().take_in(run, failures, None)
    tags = tags_of({"job": "flights", "run": "1", "purpose": "live"}.items())
    at = (now_ms() - 60_000) * 10**6
    assert store.write(ENGINE, [Point("job", tags, (("in", 120.0),), at)]) == []


def test_every_kind_of_event_is_there_newest_first(as_, alice, happened):
    found = as_(alice).get("/changes/series.json").json()
    assert {event["lane"] for event in found["events"]} == {"dep", "sav", "ck", "rs"}
    times = [event["at_ms"] for event in found["events"]]
    assert times == sorted(times, reverse=True)
    assert [value for _, value in found["rate"]] == [120.0]


def test_each_leads_to_the_page_that_says_more(as_, alice, happened):
    events = as_(alice).get("/changes/series.json").json()["events"]
    (restart,) = (event for event in events if event["lane"] == "rs")
    assert restart["title"] == "flights restarted: WorkerLost"
    assert restart["url"] == "/jobs/flights/exceptions/"


@pytest.mark.parametrize(("hours", "shown"), [("6", False), ("168", True), ("9", False)])
def test_the_address_says_how_long_ago(hours, shown, as_, alice, happened):
    page = as_(alice).get(f"/changes/?hours={hours}").content.decode()
    assert ("LongAgo" in page) is shown
    assert "It expired." in page


def test_a_label_stays_as_it_was_written_and_a_long_text_says_that_it_is_cut(
    as_, alice, run, savepoint
):
    type(savepoint).objects.update(label="before upgrade")
    long = FailureSighting(now_ms(), "TooLong", "a word " * 60, "")
    FailureNotes().take_in(run, [long], None)
    page = as_(alice).get("/changes/").content.decode()
    assert "Labelled “before upgrade”." in page
    assert "a wor…</span>" in page


def test_failures_of_the_last_day_stand_on_the_tab_of_exceptions(as_, alice, happened):
    page = as_(alice).get("/jobs/flights/").content.decode()
    assert 'Exceptions <span class="c crit" title="in the last 24 hours">1</span>' in page


def test_a_stranger_sees_nothing_of_it(as_, mallory, happened):
    found = as_(mallory).get("/changes/series.json").json()
    assert (found["events"], found["rate"]) == ([], [])


def test_the_list_as_a_file(as_, alice, happened):
    answer = as_(alice).get("/changes.csv").getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(answer)))
    assert len(rows) == 4
    assert {row["job"] for row in rows} == {"flights"}
