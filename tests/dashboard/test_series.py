"""What plots are made of: a job's outputs and how it ran."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.metrics.contract import DAY_MS
from controlplane.metrics.line_protocol import Point, tags_of
from controlplane.metrics.queries import output_choices, output_lines
from controlplane.metrics.store import ENGINE, OUTPUTS
from controlplane.moments import epoch_ms
from controlplane.snapshots.checkpoint_bars import BARS, checkpoint_bars
from controlplane.snapshots.models import Checkpoint

DAY_NS = 86_400_000_000_000


def daily(measurement, carrier, origin, day, delay):
    tags = tags_of({"carrier": carrier, "origin": origin}.items())
    fields = (("flights", 10), ("mean_delay", delay))
    return Point(measurement, tags, fields, day * DAY_NS)


@pytest.fixture
def outputs(store, flights):
    points = [
        daily("flights_daily", carrier, origin, day, float(day))
        for carrier in ("AA", "B6", "DL")
        for origin in ("EWR", "JFK")
        for day in range(120)
    ]
    points += [daily("flights_daily@r-1", "AA", "EWR", day, -1.0) for day in range(30, 60)]
    points += [daily("flightsomething", "AA", "EWR", 1, 1.0)]
    assert store.write(OUTPUTS, points) == []


def test_means_come_first_and_the_smaller_tag_is_chosen_from(outputs, flights):
    labels = [choice.label for choice in output_choices(flights)]
    assert labels == [
        "daily, mean delay, EWR",
        "daily, mean delay, JFK",
        "daily, flights, EWR",
        "daily, flights, JFK",
    ]


def test_one_line_per_carrier_with_the_newest_ninety_windows(outputs, flights):
    lines = output_lines(output_choices(flights), "")
    assert [line.name for line in lines] == ["AA", "B6", "DL"]
    assert [len(line.points) for line in lines] == [90, 90, 90]
    assert lines[0].points[-1] == (119 * 86_400_000, 119.0)


def test_a_replay_is_drawn_beside_the_live_output_of_the_same_days(outputs, flights):
    lines = output_lines(output_choices(flights), "", "r-1")
    assert [(line.name, line.dash, line.hue) for line in lines] == [
        ("AA live", None, 0),
        ("AA r-1", (5, 4), 0),
    ]
    live, shadow = lines
    assert [at for at, _ in live.points] == [at for at, _ in shadow.points]


def test_a_choice_that_is_not_on_offer_shows_the_first_one(outputs, flights):
    assert output_lines(output_choices(flights), "engine|secret|") == output_lines(
        output_choices(flights), ""
    )


def test_a_job_that_wrote_nothing_has_a_place_for_its_output(flights, store, as_, alice):
    answer = as_(alice).get("/jobs/flights/output.json").json()
    assert answer == {"series": [], "choices": []}
    assert b'data-output="Output of flights"' in as_(alice).get("/jobs/flights/").content


def test_the_output_of_a_job_is_for_its_team(outputs, flights, as_, alice, mallory):
    path = "/jobs/flights/output.json"
    answer = as_(alice).get(path).json()
    assert len(answer["series"]) == 3
    assert [one["value"] for one in answer["choices"]] == [
        one.value for one in output_choices(flights)
    ]
    assert as_(mallory).get(path).status_code == 404


def test_history_holds_rates_and_delays_of_live_runs_only(store, flights, as_, alice):
    now = timezone.now().timestamp()
    for purpose, rate in (("live", 5.0), ("replay", 900.0)):
        tags = tags_of({"job": "flights", "run": "1", "purpose": purpose}.items())
        fields = (("in", rate), ("delay_ms", 7.0))
        store.write(ENGINE, [Point("job", tags, fields, int((now - 30) * 1e9))])
    answer = as_(alice).get("/jobs/flights/history.json?minutes=10").json()
    assert [value for _, value in answer["rate"]] == [5.0]
    assert [value for _, value in answer["delay"]] == [7.0]


def checkpoint(run, number, at, status="completed", failure=""):
    return Checkpoint(
        run=run,
        engine_checkpoint_id=number,
        status=status,
        trigger_at=at,
        duration_ms=number,
        failure=failure,
    )


def test_history_holds_the_checkpoints_and_events_of_a_chosen_time(
    run, savepoint, store, as_, alice
):
    now = timezone.now()
    at = [now - timedelta(minutes=minutes) for minutes in (300, 200, 190, 100)]
    Checkpoint.objects.bulk_create(
        [
            checkpoint(run, 1, at[0]),
            checkpoint(run, 2, at[1]),
            checkpoint(run, 3, at[2], "failed", failure="it expired"),
            checkpoint(run, 4, at[3]),
        ]
    )
    start, stop = epoch_ms(at[1]), epoch_ms(at[3])
    query = f"from={start}&to={stop}"
    answer = as_(alice).get(f"/jobs/flights/history.json?{query}").json()
    told = [(bar["checkpoint"], bar["status"], bar["failure"]) for bar in answer["checkpoints"]]
    assert told == [(2, "completed", ""), (3, "failed", "it expired")]
    assert (answer["from_ms"], answer["to_ms"]) == (start, stop)
    assert answer["events"] == []
    last = as_(alice).get("/jobs/flights/history.json?minutes=10").json()["events"]
    assert {event["lane"] for event in last} == {"dep", "sav"}


def test_many_checkpoints_are_the_longest_of_each_few(run, flights):
    now = timezone.now()
    rows = [checkpoint(run, n, now - timedelta(seconds=1000 - n)) for n in range(1, 701)]
    Checkpoint.objects.bulk_create(rows)
    bars = checkpoint_bars(flights, epoch_ms(now) - DAY_MS, epoch_ms(now))
    assert len(bars) <= BARS
    assert sum(bar.of for bar in bars) == 700
    assert [bar.dur_ms for bar in bars][-2:] == [698, 700]


def test_history_takes_as_many_queries_however_much_happened(
    run, flights, store, as_, alice, django_assert_num_queries
):
    now, browser = timezone.now(), as_(alice)
    Checkpoint.objects.bulk_create([checkpoint(run, n, now) for n in range(1, 60)])
    with django_assert_num_queries(9):
        browser.get("/jobs/flights/history.json")


@pytest.mark.parametrize(
    "query", ["from=0&to=0", "from=99&to=1", "from=1&to=999999999999999", "from=x&to=2"]
)
def test_a_strange_stretch_of_time_is_no_error(query, flights, store, as_, alice):
    answer = as_(alice).get(f"/jobs/flights/history.json?{query}").json()
    assert 1_000 <= answer["to_ms"] - answer["from_ms"] <= 7 * DAY_MS


@pytest.mark.parametrize("minutes", ["x", "-1", "0", "99999999999"])
def test_a_strange_range_is_no_error(minutes, flights, store, as_, alice):
    assert as_(alice).get(f"/jobs/flights/history.json?minutes={minutes}").status_code == 200
