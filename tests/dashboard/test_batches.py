"""Streaming statistics: does a job keep up, the page of a running one, and of one that is not."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from controlplane.backends import asked
from controlplane.backends.streaming import SourceBatches
from controlplane.jobs.keeping_up import Busiest, growth_ms, verdict
from controlplane.jobs.models import Run
from dashboard.views.batches import PageWords

PAGE = "/jobs/flights/batches/"
BUSIEST = Busiest("daily", 99.4)


def source(queue=(4.0, 4.0, 4.0), headroom=(5.0, 5.0, 5.0), batches=(10, 10, 10), limit=None):
    """Three steps of a source that reads 900 rows a second."""
    series = {"queue_delay_ms": queue, "headroom": headroom, "batches": batches}
    series["rows_per_second"] = (900.0,) * len(batches)
    return SourceBatches("flights", "flights", {"batches": sum(batches)}, series, limit)


@pytest.mark.parametrize(
    ("steps", "head", "told"),
    [
        (source(), "Keeps up", "5.0 times the rows could be read in the same time"),
        (source(headroom=(1.1,) * 3), "Keeps up, barely", "daily is busy 99 % of the time"),
        (source(headroom=(1.0,) * 3), "Reads as fast as it can", "rows wait 4 ms"),
        (source((0.0, 5e3, 9e3), (1.0,) * 3), "Falls behind", "rows wait 9.0 s"),
        (source((0.0, 5e3, 9e3)), "Held back", "yet rows wait 9.0 s, 9.0 s longer than before"),
        (source(limit=900.0), "Reads as much as its limit allows", "it may read 900 /s, and does"),
        (source(batches=(0, 0, 0)), "Nothing was read", "no batch ended in this time"),
        (source(batches=(0, 0, 0), limit=0), "Reading is paused", "its limit is 0"),
        (source(headroom=(None,) * 3), "Not known", "the engine tells no headroom"),
        # A delay that is long and steady is no falling behind; nor are 400 ms more.
        (source((9e3, 9e3, 9.1e3), (1.0,) * 3), "Reads as fast as it can", "rows wait 9.1 s"),
        (source((0.0, 2e2, 4e2), (1.0,) * 3), "Reads as fast as it can", "rows wait 400 ms"),
    ],
)
def test_one_sentence_says_whether_a_source_keeps_up(steps, head, told):
    said = verdict(steps, BUSIEST, PageWords())
    assert said.head == head
    assert told in said.rest


def test_steps_weigh_as_much_as_their_batches():
    uneven = source(queue=(0.0, 0.0, 0.0, 0.0, 90.0, 10.0), batches=(1, 1, 1, 1, 1, 7))
    uneven = replace(uneven, series=uneven.series | {"headroom": (5.0,) * 6})
    assert growth_ms(uneven.series) == 20.0


def test_steps_without_a_batch_say_nothing():
    assert growth_ms(source(queue=(None, 4.0, 9.0), batches=(0, 1, 1)).series) == 0.0


def test_the_page_says_how_much_more_could_be_read(as_, alice, running):
    page = as_(alice).get(PAGE).content.decode()
    assert "<b>Keeps up.</b> 5.0 times the rows could be read in the same time." in page
    assert '4.50<span class="u">k/s</span>' in page  # 900 rows a second, five times
    assert "Source: flights" in page
    assert page.count('<tr class="r" id="t-') == 20


def test_an_engine_is_asked_once_by_all_who_look_at_the_same_time(as_, alice, bob, running):
    one = as_(alice).get(PAGE).context["page"].at_ms
    assert as_(bob).get(PAGE).context["page"].at_ms == one


def test_plots_have_a_value_or_a_gap_for_each_step(as_, alice, running):
    found = as_(alice).get("/jobs/flights/batches/series.json?minutes=60").json()
    assert (found["step_s"], len(found["time_ms"])) == (12, 300)
    assert {len(values) for values in found["series"].values()} == {300}
    assert as_(alice).get("/jobs/flights/batches/series.json?minutes=7").json()["step_s"] == 1


def test_one_source_can_be_looked_at_alone(as_, alice, running):
    page = as_(alice).get(f"{PAGE}?source=flights").content.decode()
    assert "<b>Keeps up: Source: flights.</b>" in page


def test_the_steps_as_a_file(as_, alice, running):
    answer = as_(alice).get("/jobs/flights/batches.csv?minutes=5").getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(answer)))
    assert len(rows) == 300
    assert (rows[0]["rows"], rows[0]["queue_delay_ms"]) == ("900", "4.0")


@pytest.mark.parametrize("state", ["FAILED", "CANCELED"])
def test_a_job_that_does_not_run_has_no_figures(state, as_, alice, run, store):
    Run.objects.update(state=state)
    page = as_(alice).get(PAGE).content.decode()
    assert "The job flights does not run." in page
    assert "Keeps up" not in page.split("<main")[1].split("Sources")[0]


def test_an_engine_that_is_away_is_said_to_be_away(as_, alice, run, store):
    type(run.cluster).objects.update(url="http://127.0.0.1:9")
    page = as_(alice).get(PAGE).content.decode()
    assert "Engine at http://127.0.0.1:9 cannot be reached" in page
    asked.forget()


def test_an_engine_that_keeps_none_says_so(as_, alice, running):
    Run.objects.update(engine_job_id="b" * 32)
    assert "keeps no streaming statistics" in as_(alice).get(PAGE).content.decode()
