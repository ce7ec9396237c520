"""Metrics of a job: what the address chooses, what is kept, what is live, and what is missing."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.http import QueryDict

from controlplane.backends import asked
from controlplane.backends.metrics import fact_of
from controlplane.jobs.metric_choice import CHOSEN, Chosen, chosen_of
from controlplane.jobs.models import Run
from controlplane.metrics.line_protocol import Point, tags_of
from controlplane.metrics.store import ENGINE
from controlplane.moments import now_ms
from engine.testing.fake_values import SOURCE_ID

PAGE = "/jobs/flights/metrics/"
BUSY = f"{SOURCE_ID}|busyTimeMsPerSecond|"


@pytest.fixture
def running(running, store):
    """The job on an engine, with what was kept of it in the last minute."""
    tags = tags_of({"job": "flights", "run": str(running.pk), "purpose": "live"}.items())
    nodes = [{"id": SOURCE_ID, "parallelism": 2, "description": "flights"}]
    Run.objects.update(plan={"nodes": nodes})
    at = now_ms() // 1_000 * 1_000
    points = [
        Point("job", tags, (("in", 100.0 + ago), ("delay_ms", 2_500.0)), (at - ago * 1_000) * 10**6)
        for ago in range(1, 60)
    ]
    assert store.write(ENGINE, points) == []
    return running


def text_of(as_, person, query=""):
    return as_(person).get(f"{PAGE}{query}").content.decode()


def data_of(as_, person, query):
    return as_(person).get(f"{PAGE}series.json?{query}").json()["figures"]


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        (["job|kept.in|"], [Chosen("job", "kept.in", "")]),
        (["a|b|3", "a|b|3"], [Chosen("a", "b", "3")]),
        (["a|b|x", "a|b", "", "|b|", "a|b|c|d"], []),
        ([f"a|{n}|" for n in range(40)], [Chosen("a", str(n), "") for n in range(CHOSEN)]),
    ],
)
def test_the_address_is_read_as_far_as_it_makes_sense(given, understood):
    assert chosen_of(given) == understood


@pytest.mark.parametrize(
    ("name", "vertex", "shape", "factor"),
    [
        ("uptime", None, "dur", 1.0),
        ("lastCheckpointSize", None, "bytes", 1.0),
        ("numRestarts", None, "count", 1.0),
        ("busyTimeMsPerSecond", "v", "percent", 0.1),
        ("currentInputWatermark", "v", "time", 1.0),
        ("flights.newestEventTime", "v", "time", 1e-3),
        ("flights.numRecordsOutPerSecond", "v", "rate", 1.0),
        ("Shuffle.Netty.Input.Buffers.inPoolUsage", "v", "percent", 100.0),
        ("flights.my_own_counter", "v", "plain", 1.0),
    ],
)
def test_each_metric_has_its_unit(name, vertex, shape, factor):
    fact = fact_of(name, vertex)
    assert (fact.format, fact.factor) == (shape, pytest.approx(factor))


def test_what_is_kept_has_points_and_an_age(as_, alice, running):
    (figure,) = data_of(as_, alice, "m=job|kept.in|&minutes=5")
    assert figure["kept"]
    assert [value for _, value in figure["points"][-3:]] == [103.0, 102.0, 101.0]
    assert figure["at_ms"] == figure["points"][-1][0]


def test_a_longer_time_is_drawn_in_means(as_, alice, running):
    (figure,) = data_of(as_, alice, "m=job|kept.in|&minutes=360")
    assert len(figure["points"]) <= 2


def test_live_ones_have_least_mean_and_largest_over_subtasks(as_, alice, running):
    together, second = data_of(as_, alice, f"m={BUSY}&m={BUSY}1")
    assert together["now"] == pytest.approx([10.0, 12.5, 15.0])
    assert second["now"] == pytest.approx([15.0] * 3)
    assert (together["points"], together["missing"]) == ([], "")


def test_a_job_has_live_figures_of_its_own(as_, alice, running):
    (figure,) = data_of(as_, alice, "m=job|lastCheckpointDuration|")
    assert (figure["now"], figure["format"]) == ([75.0, 75.0, 75.0], "dur")


@pytest.mark.parametrize(
    ("chosen", "missing"),
    [
        ("gone|busyTimeMsPerSecond|", "the job has no such operator now"),
        ("job|noSuchMetric|", "the engine knows no number of that name here"),
        ("job|kept.nonsense|", "no figure of that name is kept"),
        ("job|kept.pending|", "nothing was kept in this time"),
    ],
)
def test_what_is_missing_says_why(chosen, missing, as_, alice, running):
    (figure,) = data_of(as_, alice, f"m={chosen}")
    assert (figure["missing"], figure["now"]) == (missing, None)


def test_an_engine_that_is_away_is_asked_once_and_what_is_kept_is_shown(as_, alice, running):
    type(running.cluster).objects.update(url="http://127.0.0.1:9")
    kept, live, job = data_of(as_, alice, f"m=job|kept.in|&m={BUSY}&m=job|uptime|")
    assert kept["now"]
    assert "cannot be reached" in live["missing"]
    assert live["missing"] == job["missing"]
    asked.forget()


def test_the_page_offers_what_the_engine_lists(as_, alice, running):
    page = text_of(as_, alice, f"?where={SOURCE_ID}")
    assert f'<option value="{BUSY}"' in page
    assert "all 2 subtasks" in page
    assert "Rows read" in page  # of the figures that are shown without a choice


def test_a_figure_is_added_to_the_address(as_, alice, running):
    answer = as_(alice).get(f"{PAGE}?m=job|kept.in|&minutes=5&add={BUSY}&of=1")
    assert answer.status_code == 302
    query = QueryDict(answer["Location"].partition("?")[2])
    assert query.getlist("m") == ["job|kept.in|", f"{BUSY}1"]
    assert set(query) == {"m", "minutes"}


def test_a_figure_is_taken_out_of_those_that_nobody_chose(as_, alice, running):
    page = text_of(as_, alice)
    assert "m=job%7Ckept.out%7C&amp;m=job%7Ckept.delay_ms%7C&amp;m=job%7Ckept.busy%7C" in page


def test_a_job_that_does_not_run_shows_what_was_kept(as_, alice, running):
    Run.objects.update(state="CANCELED")
    page = text_of(as_, alice, f"?m=job|kept.in|&m={BUSY}")
    assert "The job does not run." in page
    assert "series store" in page


def test_the_choice_as_a_file(as_, alice, running):
    query = f"?minutes=5&m=job|kept.in|&m={BUSY}"
    answer = as_(alice).get(f"/jobs/flights/metrics.csv{query}").getvalue().decode()
    *kept, live = csv.DictReader(io.StringIO(answer))
    assert {row["unit"] for row in kept} == {"rate"}
    assert (live["place"], live["min"], live["value"]) == ("flights", "10.0", "")
    answer = as_(alice).get(f"/jobs/flights/metrics.json{query}").getvalue()
    assert len(json.loads(answer)) == len(kept) + 1
