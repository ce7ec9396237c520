"""headwater replay: planned, started, watched, compared, promoted and rolled back from a shell."""

from __future__ import annotations

import json

import pytest

from controlplane.replay.models import Difference, Replay, ReplayOutput
from controlplane.replay.tuning import Tuning, tune_replay, tuning_of
from controlplane.snapshots.models import Savepoint
from operation_cases import caught_up


@pytest.fixture
def replay(flights, alice, engine, drive, tmp_path):
    """One that has caught up, with a difference that nobody has accepted yet."""
    made = caught_up(flights, alice, engine, drive)
    output = ReplayOutput.objects.create(
        replay=made,
        uid="daily",
        name="daily",
        kind="parquet",
        place=str(tmp_path / "daily"),
        beside=str(tmp_path / "daily@r-1"),
        hours=[[0, 7, 2, 0, 0]],
    )
    example = {"at": 0, "keys": {"carrier": "AA"}, "old": {"n": 1}, "new": {"n": 2}}
    Difference.objects.create(
        output=output,
        verdict="changed",
        fields=["n"],
        rows=2,
        first_seen=made.created_at,
        examples=[example],
    )
    return made


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr("controlplane.client.following.POLL_S", 0)


def test_from_the_plan_to_a_replay(headwater, running, alice, drive):
    assert headwater("savepoint", "flights")[0] == 0
    savepoint = str(Savepoint.objects.get().pk)
    terms = ("--within", "60", "--for", "300", "--back-days", "2")
    code, out, err = headwater("replay", "plan", "flights", savepoint, "1", *terms)
    assert (code, "daily" in out, "restored" in out) == (0, True, True), err
    assert "behind the live job, for 5 m; can be rolled back for 2 d" in out
    dry = ("--until", "2013-06-01T00:00:00Z", "--dry-run", "--limit", "5000", "--drop", "late")
    dry += ("--accept-missing-input", "flights", "--begin", "flights=earliest", *terms)
    assert headwater("replay", "start", "flights", savepoint, "1", *dry, "--no-wait")[0] == 0
    bounded = Replay.objects.get()
    assert (bounded.until.month, bounded.discards, bounded.read_limit) == (6, True, 5000.0)
    assert (bounded.run.dropped, bounded.accepted_gaps) == (["late"], ["flights"])
    assert bounded.positions == {"flights": "earliest"}
    assert tuning_of(bounded) == Tuning(60.0, 300.0, 2.0)
    assert headwater("replay", "abandon", str(bounded.pk))[0] == 0
    code, out, err = headwater("replay", "start", "flights", savepoint, "1")
    assert (code, "is r-2" in err, "replays from savepoint" in out) == (0, True, True), err
    Replay.objects.filter(number=2).update(status=Replay.Status.CAUGHT_UP)
    code, _, err = headwater("replay", "watch", str(Replay.objects.get(number=2).pk))
    assert code == 0
    assert "r-2 caught up [" in err


def test_a_plan_that_does_not_fit_is_refused(headwater, running, engine):
    headwater("savepoint", "flights")
    engine.refuses_restore = "operator daily has another key"
    savepoint = str(Savepoint.objects.get().pk)
    code, _, err = headwater("replay", "plan", "flights", savepoint, "1")
    assert (code, err) == (1, "headwater: operator daily has another key\n")


def test_compared_accepted_promoted_and_rolled_back(headwater, replay):
    one = str(replay.pk)
    out = headwater("replay", "compare", one)[1]
    assert "carrier AA: 1 → 2" in out
    assert "accept those that the new version intends" in headwater("replay", "check", one)[1]
    code, _, err = headwater("replay", "promote", one)
    assert (code, "1 kind of differences is not accepted" in err) == (1, True)
    difference = str(Difference.objects.get().pk)
    assert headwater("replay", "accept", one, difference)[1].startswith("accepted; 0 kinds")
    code, out, err = headwater("replay", "promote", one)
    assert (code, "flights runs version 2" in out) == (0, True), err
    assert headwater("replay", "check", one)[1].endswith("it can be rolled back\n")
    code, out, err = headwater("replay", "rollback", one)
    assert (code, "flights runs version 1 again" in out) == (0, True), err


def test_cut_over_at_an_event_time(headwater, replay):
    one = str(replay.pk)
    Difference.objects.all().delete()
    code, _, err = headwater("replay", "promote", one, "--at", "2013-12-01T00:00:00Z")
    assert (code, "the live job is at 2013-12-01 00:00:00 UTC" in err) == (1, True)
    code, out, err = headwater("replay", "promote", one, "--at", "soon")
    assert (code, "version 2 from 2013-12-01 00:01:00 UTC on" in out) == (0, True), err


def test_throttled_paused_and_resumed(headwater, replay, engine):
    one, job = str(replay.pk), replay.run.engine_job_id
    assert headwater("replay", "throttle", one, "500")[1] == "r-1 reads at most 500 rows a second\n"
    assert headwater("replay", "pause", one)[1] == "r-1 is paused\n"
    assert engine.limits[job] == 0.0
    assert headwater("replay", "resume", one)[0] == 0
    said = headwater("replay", "throttle", one, "60x")[1]
    assert (said, engine.speeds[job]) == ("r-1 reads at most 60× real time\n", 60.0)
    assert headwater("replay", "throttle", one, "none")[1] == "r-1 reads as fast as it can\n"
    assert engine.limits[job] is None
    told = json.loads(headwater("--json", "replay", "pause", one)[1])
    assert told["paused"] is True
    with pytest.raises(SystemExit):
        headwater("replay", "throttle", one, "fast")


def test_tuned_by_what_is_named(headwater, replay):
    one = ("replay", "tune", str(replay.pk))
    code, out, err = headwater(*one, "--within", "60", "--for", "9")
    assert (code, "(within 60 s of it) for 9 s; promoted" in out) == (0, True), err
    assert "(as the live job's pace says) for 9 s" in headwater(*one, "--within", "pace")[1]
    replay.refresh_from_db()
    assert (replay.level_within_s, replay.level_for_s, replay.back_days) == (None, 9.0, 7.0)


def test_abandoned(headwater, replay):
    assert headwater("replay", "abandon", str(replay.pk))[0] == 0
    replay.refresh_from_db()
    assert replay.status == Replay.Status.ABANDONED


def test_a_clone_starts_the_same_again(headwater, replay, alice):
    tune_replay(replay, alice, Tuning(level_for_s=9.0))
    code, _, err = headwater("replay", "clone", str(replay.pk), "--no-wait")
    assert (code, "is r-2" in err) == (0, True), err
    one, other = Replay.objects.order_by("number")
    assert (one.savepoint, one.version) == (other.savepoint, other.version)
    assert tuning_of(other) == tuning_of(one) == Tuning(level_for_s=9.0)
