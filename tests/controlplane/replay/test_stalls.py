"""Why a replay does not get on: each cause by name, wherever people look."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from controlplane.backends.sightings import FailureSighting, JobSighting, VertexSighting
from controlplane.live import topics
from controlplane.live.queries import latest
from controlplane.replay.compared import comparison_of
from controlplane.replay.models import Replay
from controlplane.replay.queries import replay_page
from controlplane.replay.sampling import percent_of, record_sample, record_standstill
from controlplane.replay.stalls import Cause, Pace, Seen, seen_of, stall
from operation_cases import caught_up

SLOW = Seen(pending_rows=9, rate=5.0, measured=True)


@pytest.fixture
def replay(flights, alice, engine, drive):
    made = caught_up(flights, alice, engine, drive)
    Replay.objects.update(status=Replay.Status.REPLAYING)
    made.refresh_from_db()
    return made


def falls_behind(replay, seen, seconds=3, hour=0):
    """Samples in which the live job gains a day each second, and the replay nothing."""
    begin = replay.event_time_start + timedelta(hours=hour)
    for second in range(seconds):
        wall = replay.created_at + timedelta(hours=hour, seconds=second)
        record_sample(replay, wall, begin, begin + timedelta(days=9 + second), seen)
    replay.refresh_from_db()


@pytest.mark.parametrize(
    ("seen", "pace", "lately", "cause", "text"),
    [
        (SLOW, Pace(paused=True), 0, Cause.PAUSED, "paused: nothing is read until"),
        (Seen(away="the engine lab does not answer"), Pace(), 0, Cause.ENGINE_AWAY, "engine lab"),
        (Seen("CREATED", waiting_for="waits for 4 slots, 1 free"), Pace(), 0, "no_slots", "1 free"),
        (
            Seen("RESTARTING", restarts=3, failure="division by zero (daily)"),
            Pace(),
            0,
            Cause.RESTARTING,
            "its run restarts for the 3rd time, failing with: division by zero (daily)",
        ),
        (Seen("INITIALIZING"), Pace(), 0, Cause.NOT_RUNNING, "its run is being started"),
        (Seen("WEIRD"), Pace(), 0, Cause.NOT_RUNNING, "its run is weird"),
        (Seen(restarts=2), Pace(), 1, Cause.RESTARTING, "its run has restarted 2 times"),
        (Seen(pending_rows=0), Pace(), 0, Cause.EXHAUSTED, "have nothing left to read"),
        (SLOW, Pace(limit=5.0), 0, Cause.READ_LIMIT, "may read 5 rows a second, and do"),
        (Seen(), Pace(limit=5.0), 0, Cause.READ_LIMIT, "its sources may read 5 rows a second"),
        (Seen(held="daily holds the job back"), Pace(limit=9e9), 0, "read_limit", "may read"),
        (Seen(rate=1.0, held="daily holds it"), Pace(limit=9.0), 0, "operator", "daily holds it"),
        (Seen(busiest="read"), Pace(), 0, "operator", "read is busy most of the time and waits"),
        (SLOW, Pace(), 0, Cause.UNKNOWN, "why is not known: no operator is busy"),
        (Seen(), Pace(), 0, Cause.UNKNOWN, "why is not known: the engine does not say how busy"),
    ],
)
def test_the_first_cause_that_explains_it_is_named(seen, pace, lately, cause, text):
    found = stall(seen, pace, lately)
    assert found.cause == cause
    assert text in found.text


def vertex(id_, busy, waits) -> VertexSighting:
    return VertexSighting(id_, "RUNNING", 1, 1, None, None, busy, waits, None, None, False, False)


def test_a_look_becomes_what_matters_of_it():
    sighting = JobSighting(
        id="r",
        state="RUNNING",
        since_ms=None,
        waiting_for="",
        uptime_ms=None,
        restarts=2,
        plan={"nodes": [{"id": "v2", "operators": ["enrich", "map"]}]},
        vertices=(vertex("v1", 30.0, 60.0), vertex("v2", 70.0, 0.0)),
        checkpoints=(),
        completed=None,
        failures=(FailureSighting(1, "ValueError", "no such carrier", "enrich[0]"),),
        event_ms=None,
        newest_ms=None,
        pending_rows=5,
    )
    seen = seen_of(sighting, "enrich holds the job back")
    assert (seen.restarts, seen.failure) == (2, "no such carrier (enrich[0])")
    assert (seen.busiest, seen.measured, seen.pending_rows) == ("enrich", True, 5)


def test_the_reason_is_on_the_page_in_the_list_and_in_the_api(
    replay, alice, client, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        falls_behind(replay, Seen(busiest="enrich <x>", measured=True, rate=4.0))
    told = "event time stands still; enrich &lt;x&gt; is busy most of the time"
    client.force_login(alice)
    page = client.get(reverse("dashboard:replay", args=[replay.pk])).content.decode()
    assert told in page
    assert ">not catching up</span>" in page
    assert told in client.get(reverse("dashboard:replays")).content.decode()
    record = latest(topics.replay(replay.pk))
    assert (record["stalled"], record["eta_low_s"], record["speed"]) == (True, None, 0.0)


def test_a_run_that_does_not_run_says_why_and_its_speed_is_not_known(replay):
    falls_behind(replay, SLOW)
    waits = Seen("RESTARTING", restarts=1, failure="disk full")
    record_standstill(replay, replay.created_at, waits)
    replay.refresh_from_db()
    assert replay.note == (
        "not catching up: its run restarts for the 1st time, failing with: disk full"
    )
    assert (replay.speed, replay.is_stalled) == (None, True)
    assert replay.history


def test_a_start_that_takes_its_time_is_no_stall(replay):
    Replay.objects.update(status=Replay.Status.STARTING)
    for seen, note in [(Seen("INITIALIZING"), ""), (Seen("CREATED", waiting_for="no slots"), "no")]:
        record_standstill(replay, replay.created_at, seen)
        replay.refresh_from_db()
        assert bool(note) is replay.is_stalled


def test_percent_goes_back_with_a_restart_only_and_the_chart_knows_when(replay):
    begin = replay.event_time_start
    reached = []
    steps = [(50, 100, 0), (50, 400, 0), (10, 400, 1), (100, 400, 1)]
    for second, (hours, live, restarts) in enumerate(steps):
        wall = replay.created_at + timedelta(seconds=second)
        times = begin + timedelta(hours=hours), begin + timedelta(hours=live)
        record_sample(replay, wall, *times, Seen(restarts=restarts))
        replay.refresh_from_db()
        reached.append(percent_of(replay))
    assert reached == [50.0, 50.0, 2.5, 25.0]
    assert [point[3] for point in replay.history] == [0, 0, 1, 1]
    assert replay.speed > 0


LIMITS = (
    {},
    {"speed_limit": 60.0},
    {"speed_limit": None, "read_limit": 500.0},
    {"read_limit": None, "speed_limit": 60.0, "paused": True},
)


def test_a_limit_and_a_pause_are_in_the_chart(replay):
    for hour, changed in enumerate(LIMITS):
        Replay.objects.update(**changed)
        falls_behind(replay, SLOW, seconds=1, hour=hour)
    limits = [point[4:] for point in replay.history]
    assert limits == [[None, None], [None, 60.0], [500.0, None], [0.0, None]]


def test_its_figures_outlive_what_travels_on_the_socket(replay):
    falls_behind(replay, SLOW)
    Replay.objects.update(note="")
    replay.refresh_from_db()
    figures = replay_page(replay, comparison_of(replay)).figures
    assert figures["pct"] == 0.0
    assert figures["delay_ms"] == 11 * 86_400_000
    assert figures["event_ms"] is not None
