"""A new replay in five steps: the plan is in the address, and is started from the last one."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from urllib.parse import parse_qsl, urlencode

import pytest

from controlplane.backends.contract import SavepointSummary
from controlplane.live import topics
from controlplane.live.publish import publish
from controlplane.replay.actions import start_replay
from controlplane.replay.limits import Limit
from controlplane.replay.tuning import Tuning, tuning_of
from controlplane.snapshots.models import Savepoint


@pytest.fixture
def known(savepoint, engine):
    """The savepoint lies where the engine can read it."""
    found = SavepointSummary(savepoint.location, "flights", 1, 7_800, savepoint.event_time, {})
    engine.savepoints[savepoint.location] = found
    return savepoint


@pytest.fixture
def step(as_, alice, savepoint):
    """The page of a step, as text."""
    browser = as_(alice)

    def get(step="start", **choices):
        query = urlencode({"job": "flights", "step": step} | choices, doseq=True)
        response = browser.get(f"/replays/new/?{query}")
        assert response.status_code == 200
        return unescape(response.content.decode())

    return get


def at(page):
    """The step that a page shows, and the choices in the addresses of its steps."""
    href, _ = re.search(r'<a href="\?([^"]*)"( aria-current="step")', page).groups()
    pairs = parse_qsl(href)
    return dict(pairs)["step"], [pair for pair in pairs if pair[0] not in {"job", "step"}]


def test_without_any_choice_it_is_the_newest_of_everything(step, savepoint):
    place, choices = at(step())
    assert place == "start"
    assert choices == [
        ("sp", str(savepoint.pk)),
        ("version", "1"),
        ("parallelism", "2"),
        ("sink", "shadow"),
    ]


def test_the_axis_shades_what_is_read_again_and_up_to_where_input_is_gone(step, savepoint, run):
    publish(topics.job(run.job_id), {"event_ms": 1363842420000})  # a week later
    page = step()
    assert '<rect class="band again" x="1.0%" width="98.0%"' in page
    assert 'class="band gone"' not in page
    gone = [{"uid": "flights", "gone": ["split a"], "unknown": 0}]
    seen = {"at": "2026-12-01T00:00:00+00:00", "why_not": "", "sources": gone}
    older = savepoint.event_time - timedelta(days=7)
    Savepoint.objects.create(
        job=savepoint.job, location="/tmp/sp-0", status="completed", event_time=older, inputs=seen
    )
    page = step(sp=savepoint.pk)
    assert '<rect class="band gone" x="0.0%" width="1.0%"' in page
    assert "up to 2013-03-07 05:07 UTC input was gone when somebody looked" in page
    assert '<rect class="band again" x="50.0%" width="49.0%"' in page


def test_every_choice_stays_in_the_address(step, known, engine):
    engine.drops = {"late": 4}
    chosen = {"parallelism": 3, "limit": "5000", "until": "2013-06-01 00:00", "sink": "none"}
    page = step("review", drop=["late"], **chosen)
    place, choices = at(page)
    assert place == "review"
    assert dict(choices) == {
        "sp": str(known.pk),
        "version": "1",
        "parallelism": "3",
        "limit": "5000",
        "until": "2013-06-01 00:00:00",
        "sink": "none",
        "drop": "late",
    }
    command = f"headwater replay start flights {known.pk} 1 -p 3 --limit 5000"
    assert f"{command} --until 2013-06-01T00:00:00Z --dry-run --drop late" in page
    assert "late is left behind, 4 rows" in page


def test_a_limit_may_be_a_multiple_of_real_time(as_, alice, step, known):
    page = step("review", limit="60x")
    assert "at most 60× real time, once every task runs" in page
    assert "--limit 60x" in page
    form = page[page.index('id="plan"') :]
    fields = dict(re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', form))
    as_(alice).post("/replays/new/", fields)
    replay = known.replays.get()
    assert (replay.read_limit, replay.speed_limit) == (None, 60.0)


def test_a_time_takes_the_savepoint_before_it(step, savepoint):
    later = Savepoint.objects.get(pk=savepoint.pk)
    later.pk, later.location = None, "/tmp/sp-2"
    later.event_time += timedelta(days=10)
    later.save()
    page = step(at="2013-03-20 00:00")
    assert dict(at(page)[1])["sp"] == str(savepoint.pk)
    assert f"Savepoint {savepoint.pk} is the last one before 2013-03-20 00:00" in page
    assert dict(at(step(at="2013-03-24 05:07"))[1])["sp"] == str(later.pk)


def test_a_time_before_the_first_savepoint_is_refused_in_place(step):
    page = step(at="2013-01-01 00:00")
    assert at(page)[0] == "start"
    assert "No savepoint of flights is from before 2013-01-01 00:00:00 UTC: the first is of" in page


@pytest.mark.parametrize(
    ("wrong", "place", "sentence"),
    [
        ({"at": "noon"}, "start", "The time must be in UTC, such as 2013-06-01 00:00."),
        ({"parallelism": "0"}, "code", "Parallelism must be a whole number from 1 to 128."),
        ({"limit": "-5"}, "code", "Read limit must be rows per second, more than 0: got -5."),
        ({"limit": "fast"}, "code", "The read limit must be rows per second, 5000, or times real"),
        ({"until": "2013-01-01 00:00"}, "code", "cannot end at 2013-01-01 00:00 UTC"),
        ({"level_within_s": "near"}, "code", "Give seconds behind the live job; empty: as its"),
        ({"level_for_s": "-1"}, "code", "Seconds of being level must be from 0 to 86,400: got -1."),
        ({"back_days": "inf"}, "code", "Give days to roll back in, such as 7."),
    ],
)
def test_what_cannot_be_used_is_said_at_its_step(wrong, place, sentence, step):
    page = step("review", **wrong)
    assert at(page)[0] == place
    assert sentence in page


def test_a_damaged_savepoint_is_no_choice(step, savepoint):
    Savepoint.objects.update(verdict="damaged")
    assert "flights has no savepoint to replay from" in step()


def test_what_would_restore_is_asked_of_the_engine(step, savepoint):
    page = step("review")
    assert at(page)[0] == "restore"
    assert "Snapshot is not there: no folder /tmp/sp-1; check the path." in page
    assert 'disabled title="Choose another version, or another savepoint"' in page


def test_lost_state_needs_consent_of_each_before_the_review(step, known, engine):
    engine.drops = {"late": 4, "stale": 1}
    page = step("review", drop=["late"])
    assert at(page)[0] == "restore"
    assert "1 state has no place in version 1" in page
    assert 'name="drop" value="late" required checked' in page
    assert 'name="drop" value="stale" required>' in page
    assert at(step("review", drop=["late", "stale"]))[0] == "review"


def test_another_version_asks_for_consent_anew(step, known):
    page = step("code", drop=["late"])
    assert 'type="hidden" name="drop"' not in page


def test_who_may_only_look_asks_nothing_of_the_engine(as_, bob, known, engine):
    page = as_(bob).get("/replays/new/?job=flights&step=review").content.decode()
    assert "Starting a replay needs the operator role" in page
    assert "preflight" not in engine.calls


def test_the_review_starts_it_as_planned(as_, alice, step, known, engine):
    engine.drops = {"late": 4}
    terms = {"level_within_s": "0", "level_for_s": "300", "back_days": "0.5"}
    page = step("review", drop=["late"], limit="5000", parallelism=3, **terms)
    assert "less than 0 s of event time behind the live job, for 5 m; once promoted" in page
    assert "--within 0 --for 300 --back-days 0.5" in page
    form = page[page.index('id="plan"') :]
    fields = dict(re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', form))
    response = as_(alice).post("/replays/new/", fields)
    replay = known.replays.get()
    assert response["Location"] == f"/replays/{replay.pk}/"
    assert (replay.parallelism, replay.read_limit, replay.until) == (3, 5000.0, None)
    assert tuning_of(replay) == Tuning(0.0, 300.0, 0.5)
    assert replay.job.operations.get().params["drop"] == ["late"]


def test_input_that_is_gone_needs_consent_of_its_own_before_the_review(
    as_, alice, step, known, engine
):
    engine.gaps = {"flights": "split 'a', event time from 2013-03-01 on"}
    page = step("review", drop=["flights"])
    assert at(page)[0] == "restore"
    assert "The savepoint is older than the input of 1 source." in page
    assert 'name="accept" value="flights" required>' in page
    page = step("review", accept=["flights"])
    assert at(page)[0] == "review"
    assert "split 'a', event time from 2013-03-01 on" in page
    assert "--accept-missing-input flights" in page
    form = page[page.index('id="plan"') :]
    fields = dict(re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', form))
    as_(alice).post("/replays/new/", fields)
    assert known.replays.get().accepted_gaps == ["flights"]


def test_a_savepoint_that_is_no_choice_is_said_so_and_not_replaced_by_another(step, savepoint):
    page = step("review", sp=savepoint.pk + 1)
    assert at(page)[0] == "start"
    assert f"Savepoint {savepoint.pk + 1} is no choice: take one of these." in page


@pytest.fixture
def replayed(known, alice, engine):
    engine.drops = {"late": 4}
    version = known.job.versions.get()
    start_replay(
        known,
        version,
        alice,
        3,
        discards=True,
        limit=Limit(5000.0),
        drop=["late"],
        tuning=Tuning(level_within_s=60.0, level_for_s=300.0),
    )
    return known.replays.get()


def test_a_clone_is_the_same_plan_whose_losses_are_agreed_to_anew(as_, alice, bob, replayed):
    response = as_(alice).get(f"/replays/{replayed.pk}/clone/")
    chosen = dict(parse_qsl(response["Location"].partition("?")[2]))
    assert (chosen["parallelism"], chosen["limit"], chosen["sink"]) == ("3", "5000", "none")
    assert (chosen["level_within_s"], chosen["level_for_s"]) == ("60", "300")
    assert (chosen["step"], "drop" in chosen, "back_days" in chosen) == ("review", False, False)
    page = as_(alice).get(response["Location"]).content.decode()
    assert at(unescape(page))[0] == "restore"
    assert f'href="/replays/{replayed.pk}/clone/"' in as_(alice).get("/replays/").content.decode()
    assert "/clone/" not in as_(bob).get("/replays/").content.decode()


def test_a_clone_of_a_replay_whose_savepoint_is_gone_says_so(as_, alice, replayed):
    Savepoint.objects.update(verdict="damaged")
    response = as_(alice).get(f"/replays/{replayed.pk}/clone/")
    assert response.status_code == 409
    assert b"cannot be replayed from" in response.content


def test_savepoints_of_all_jobs_can_be_replayed_from_by_operators_only(as_, alice, bob, savepoint):
    here = f"/replays/new/?job=flights&amp;sp={savepoint.pk}"
    assert here in as_(alice).get("/savepoints/").content.decode()
    assert here not in as_(bob).get("/savepoints/").content.decode()


def test_a_job_without_savepoints_leads_to_what_has_to_be_done(as_, alice, running):
    assert "/replays/new/?job=flights" in as_(alice).get("/jobs/flights/").content.decode()
    page = as_(alice).get("/replays/new/?job=flights").content.decode()
    assert "Take one: the job goes on meanwhile. Then come back." in page


def test_sources_begin_elsewhere_as_chosen_one_by_one(as_, alice, step, known):
    known.source_positions = {"flights": {"JFK": 1, "LGA": 2}, "control": {"all": 3}}
    known.save()
    chosen = {"from:flights": "time", "time:flights": "2013-02-01 00:00"}
    chosen |= {"from:control": "earliest"}
    page = step("review", **chosen)
    assert at(page)[0] == "review"
    assert "begins at its earliest row, not at the savepoint" in page
    assert "--begin control=earliest --begin flights=2013-02-01T00:00:00+00:00" in page
    code = step("code", **chosen)
    assert 'name="from:control" value="earliest" checked' in code
    assert 'name="time:flights" value="2013-02-01T00:00:00"' in code
    form = page[page.index('id="plan"') :]
    fields = dict(re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', form))
    as_(alice).post("/replays/new/", fields)
    where = {"control": "earliest", "flights": "2013-02-01T00:00:00+00:00"}
    assert known.replays.get().positions == where


def test_a_time_that_is_none_is_said_where_it_is_asked(step, known):
    known.source_positions = {"flights": {"all": 1}}
    known.save()
    page = step("review", **{"from:flights": "time", "time:flights": "noon"})
    assert at(page)[0] == "code"
    assert "Source flights cannot begin there: got 'noon'; give earliest, or a time in UTC" in page
