"""One topic of one socket as a state machine, by example and against a model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controlplane.live.fleet import FleetView
from controlplane.live.latest import Snapshot
from controlplane.live.subscription import MAX_EVENTS, Subscription
from controlplane.live.topics import parse


def subscription(name="job.1", seq=10, value=None):
    fleet = FleetView(frozenset({"1", "2"})) if name == "fleet" else None
    following = Subscription(parse(name), fleet=fleet)
    following.snapshot(Snapshot(seq, value or {}), 0)
    return following


def patch(seq, **value):
    return {"k": "patch", "seq": seq, "ts": seq, "d": value}


def test_patches_are_merged_until_the_tick():
    following = subscription()
    following.receive(patch(11, a=1, b=1))
    following.receive(patch(12, a=2))
    assert following.tick() == {
        "k": "patch", "t": "job.1", "prev": 10, "seq": 12, "ts": 12, "d": {"a": 2, "b": 1},
    }  # fmt: skip
    assert following.tick() is None


def test_rows_of_a_table_are_merged_by_column_and_a_gone_row_stays_gone():
    following = subscription("job.1.ops")
    following.receive(patch(11, x={"in": 1, "out": 1}, y={"in": 5}))
    following.receive(patch(12, x={"in": 2}, y=None))
    assert following.tick()["d"] == {"x": {"in": 2, "out": 1}, "y": None}


def test_what_the_snapshot_holds_already_is_left_out():
    following = subscription(seq=10)
    following.receive(patch(9, a=1))
    following.receive(patch(10, a=2))
    assert following.tick() is None


def test_a_gap_makes_it_want_a_snapshot_and_drop_what_waited():
    following = subscription(seq=10)
    following.receive(patch(11, a=1))
    following.receive(patch(13, a=3))
    assert following.wants_snapshot
    assert following.tick() is None


def test_a_browser_that_has_everything_gets_no_snapshot():
    following = Subscription(parse("job.1"), resume_at=10)
    assert following.snapshot(Snapshot(10, {"a": 1}), 0) is None
    following.receive(patch(11, a=2))
    assert following.tick()["prev"] == 10


def test_a_browser_that_missed_something_gets_one():
    following = Subscription(parse("job.1"), resume_at=9)
    assert following.snapshot(Snapshot(10, {"a": 1}), 5)["d"] == {"a": 1}


def test_a_change_that_is_missing_for_two_heartbeats_makes_it_want_a_snapshot():
    following = subscription(seq=10)
    following.compare(11)
    assert not following.wants_snapshot
    following.compare(11)
    assert following.wants_snapshot


def test_a_change_that_comes_just_after_the_heartbeat_does_not():
    following = subscription(seq=10)
    following.compare(11)
    following.receive(patch(11, a=1))
    following.compare(11)
    assert not following.wants_snapshot


def test_an_operation_always_travels_whole():
    following = subscription("op." + "0" * 32, value={"id": "x", "state": "running"})
    following.receive(patch(11, state="succeeded"))
    assert following.is_urgent
    assert following.tick() == {
        "id": "x", "state": "succeeded", "k": "op", "t": "op." + "0" * 32,
        "prev": 10, "seq": 11, "ts": 11,
    }  # fmt: skip


def test_events_keep_their_order_and_too_many_become_a_snapshot():
    following = subscription("job.1.events")
    for seq in range(11, 11 + MAX_EVENTS):
        following.receive({"k": "event", "seq": seq, "ts": 0, "d": {"id": str(seq)}})
    assert not following.wants_snapshot
    following.receive({"k": "event", "seq": 11 + MAX_EVENTS, "ts": 0, "d": {"id": "last"}})
    assert following.wants_snapshot
    assert following.urgent() == []


WELL = {
    "attention": 0,
    "ailing": "all is well",
    "delay": {"delay_ms": None, "goal_ms": None},
    "late": None,
    "ckpt_ms": None,
    "old": None,
}


def test_the_fleet_shows_only_visible_jobs_and_counts_only_those():
    rows = {
        "1": {"state": "RUNNING", "in": 5.0},
        "3": {"state": "RUNNING", "in": 100.0},
        "sum": {"jobs": 2, "running": 2, "in": 105.0, "slots": 8},
    }
    following = Subscription(parse("fleet"), fleet=FleetView(frozenset({"1", "2"})))
    snap = following.snapshot(Snapshot(10, rows), 0)
    assert snap["d"] == {
        "1": {"state": "RUNNING", "in": 5.0},
        "sum": {"jobs": 1, "running": 1, "in": 5.0, "slots": 8, **WELL},
    }
    following.receive(patch(11, **{"1": {"in": None}, "3": {"in": 7.0}, "sum": {"in": 7.0}}))
    assert following.tick()["d"] == {
        "1": {"in": None},
        "sum": {"jobs": 1, "running": 1, "in": None, **WELL},
    }


def test_the_worst_of_those_that_may_be_seen_is_named():
    late = {"name": "late", "state": "RUNNING", "delay_ms": 9_000, "goal_ms": 5_000, "ckpt_ms": 7}
    old = {"name": "old", "state": "RUNNING", "delay_ms": 1, "ckpt_ms": 3, "why": "it ails"}
    rows = {"1": late, "2": old, "3": {"state": "FAILED"}, "4": late | {"delay_ms": 10_000}}
    fleet = FleetView(frozenset("123")).whole(rows)["sum"]
    assert (fleet["late"], fleet["delay"]) == ("late", {"delay_ms": 9_000, "goal_ms": 5_000})
    assert (fleet["old"], fleet["ckpt_ms"]) == ("old", 3)
    assert (fleet["attention"], fleet["ailing"]) == (2, "1 down, 1 degraded")


def test_of_no_jobs_nobody_says_that_all_is_well():
    fleet = FleetView(frozenset()).whole({})["sum"]
    assert fleet["attention"] is fleet["ailing"] is None


def test_a_job_that_is_new_in_the_fleet_makes_it_ask_again():
    following = subscription("fleet", value={"1": {"in": 1.0}})
    following.receive(patch(11, **{"2": {"in": 1.0}}))
    assert following.wants_snapshot


def test_a_fragment_about_a_job_goes_only_to_those_who_see_it():
    following = subscription("fleet", value={})
    for job in ("1", "3"):
        following.receive(
            {"k": "html", "target": "#x", "swap": "s", "html": job, "job": job, "t": "fleet"}
        )
    assert [one["html"] for one in following.urgent()] == ["1"]


messages = st.lists(
    st.tuples(st.booleans(), st.dictionaries(st.sampled_from("abc"), st.integers(), min_size=1)),
    max_size=30,
)


@given(messages, st.lists(st.booleans(), min_size=30, max_size=30))
def test_whatever_is_lost_and_whenever_it_ticks_the_browser_ends_with_the_truth(sent, ticks):
    truth, browser, seq = {}, {}, 100
    following = subscription(seq=seq)

    def show():
        if following.wants_snapshot:
            browser.clear()
            browser.update(following.snapshot(Snapshot(seq, dict(truth)), 0)["d"])
        elif message := following.tick():
            browser.update(message["d"])

    for (lost, value), ticking in zip(sent, ticks, strict=False):
        seq += 1
        truth.update(value)
        if not lost:
            following.receive(patch(seq, **value))
        if ticking:
            show()
    if seq > following.seen:  # what the heartbeat finds out
        following.want_snapshot()
    show()
    assert browser == truth
