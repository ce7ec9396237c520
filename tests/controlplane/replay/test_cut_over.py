"""A cut over at an event time: who writes which windows, whatever fails and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import combinations

import polars as pl
import pytest

from controlplane.access.errors import Refused
from controlplane.backends.contract import SETTING_FROM, SETTING_SHADOW, SETTING_UNTIL
from controlplane.jobs import actions as jobs
from controlplane.jobs.models import Run
from controlplane.moments import epoch_us
from controlplane.operations.actions import cancel_operation
from controlplane.operations.kinds import kind_of
from controlplane.operations.models import Operation
from controlplane.operations.runner import advance
from controlplane.replay.actions import promote_replay, rollback_replay
from controlplane.replay.models import Replay, ReplayOutput
from controlplane.snapshots.models import Savepoint
from operation_cases import NOW, caught_up

AT = NOW + timedelta(days=30)
CUT = AT.isoformat()
WHOLE, UP_TO, FROM = ("", ""), ("", CUT), (CUT, "")


@pytest.fixture
def replay(flights, alice, engine, drive):
    return caught_up(flights, alice, engine, drive)


def writers(engine):
    """Version and span of each job that writes to the real targets, or has to its end."""
    for job in engine.jobs.values():
        settings = job.request.settings
        if SETTING_SHADOW not in settings and job.status.state not in {"FAILED", "CANCELED"}:
            span = settings.get(SETTING_FROM, ""), settings.get(SETTING_UNTIL, "")
            yield "v2" if "v2" in job.request.artifact_id else "v1", span, job


def running(engine):
    return sorted((name, span) for name, span, job in writers(engine) if not job.status.has_ended)


def meet(one, other) -> bool:
    """Whether two spans have a window in common."""
    return not ((one[1] and one[1] <= other[0]) or (other[1] and other[1] <= one[0]))


def of(engine, span):
    """The jobs of that span, by id."""
    return (job.request.engine_job_id for _, its, job in writers(engine) if its == span)


def on_its_way(promotion, engine, clock):
    """Both versions run, and the old one has not got there yet."""
    engine.looks_until_end = 10_000
    while promotion.step != "reach":
        clock.advance(advance(promotion.pk, clock) or 0.0)
        promotion.refresh_from_db()
    while len(running(engine)) < 2 or not all(
        job.status.is_up for _, _, job in writers(engine) if not job.status.has_ended
    ):
        clock.advance(advance(promotion.pk, clock) or 0.0)
    return promotion


def crash(engine, span):
    """The engine gives up on the run of that span."""
    engine.crash_job(next(of(engine, span)), "disk is full")


def live(job) -> Run:
    return job.runs.get(purpose=Run.Purpose.LIVE, state="RUNNING")


def test_no_window_is_ever_that_of_two_runs(replay, flights, alice, engine, drive):
    seen = set()

    def look(_point):
        spans = tuple(running(engine))
        seen.add(spans)
        assert not any(meet(one, other) for (_, one), (_, other) in combinations(spans, 2))

    drive(promote_replay(replay, alice, at=AT), look)
    replay.refresh_from_db()
    drive(rollback_replay(replay, alice), look)
    together = (("v1", UP_TO), ("v2", FROM))
    assert {(("v1", WHOLE),), (("v1", UP_TO),), together, (("v2", FROM),)} <= seen
    assert running(engine) == [("v1", FROM)]


def test_the_new_version_is_the_live_one_when_the_old_one_has_got_there(
    replay, flights, alice, drive
):
    ended = drive(promote_replay(replay, alice, at=AT))
    replay.refresh_from_db()
    run = live(flights)
    assert (ended.state, replay.status) == (Operation.State.SUCCEEDED, Replay.Status.PROMOTED)
    assert (replay.cut_at, replay.new_run, run.version.number) == (AT, run, 2)
    assert replay.stood_still_ms > 0
    assert "version 2 from 2013-12-31 00:00:00 UTC on" in ended.text


def test_rolled_back_the_old_version_writes_the_windows_from_the_cut_on(
    replay, flights, alice, drive
):
    drive(promote_replay(replay, alice, at=AT))
    replay.refresh_from_db()
    drive(rollback_replay(replay, alice))
    replay.refresh_from_db()
    run = live(flights)
    assert replay.status == Replay.Status.ROLLED_BACK
    assert (run.version.number, run.written_from) == (1, AT)
    assert run.restored_from == replay.old_savepoint


def test_who_starts_it_again_leaves_out_what_was_written_before_the_cut(
    replay, flights, alice, engine, drive
):
    drive(promote_replay(replay, alice, at=AT))
    run = live(flights)
    engine.crash_job(run.engine_job_id, "disk is full")
    Run.objects.filter(pk=run.pk).update(state="FAILED")
    drive(jobs.deploy(flights, alice, run.version, savepoint=run.restored_from))
    assert live(flights).written_from == AT


@pytest.mark.parametrize("span", [UP_TO, FROM])
def test_when_one_of_them_fails_on_the_way_the_old_one_goes_on_alone(
    replay, flights, alice, engine, drive, clock, span
):
    promotion = on_its_way(promote_replay(replay, alice, at=AT), engine, clock)
    crash(engine, span)
    ended = drive(promotion)
    assert (ended.state, "disk is full" in ended.error) == (Operation.State.FAILED, True)
    assert running(engine) == [("v1", WHOLE)]
    assert [run.version.number for run in flights.runs.filter(state="RUNNING")] == [1]


def test_one_that_fails_after_the_old_one_got_there_leaves_it_the_windows_from_there_on(
    replay, flights, alice, engine, drive, clock
):
    promotion = on_its_way(promote_replay(replay, alice, at=AT), engine, clock)
    engine.looks_until_end = 0
    engine.job(next(of(engine, UP_TO)))
    crash(engine, FROM)
    assert drive(promotion).state == Operation.State.FAILED
    assert running(engine) == [("v1", FROM)]
    assert live(flights).restored_from == Savepoint.objects.get(origin="upgrade")


def test_what_the_old_one_wrote_on_its_way_gives_way_when_it_cannot_go_on_from_there(
    replay, flights, alice, engine, drive, clock, tmp_path
):
    folder = tmp_path / "daily"
    output = {"place": folder, "beside": tmp_path / "daily@r-1", "keys": ["carrier"]}
    ReplayOutput.objects.create(
        replay=replay, uid="daily", kind="parquet", time_column="window_end", **output
    )
    ReplayOutput.objects.create(replay=replay, uid="told", name="told", why_not="it is printed")
    promotion = on_its_way(promote_replay(replay, alice, at=AT), engine, clock)
    half = next(of(engine, UP_TO))
    written = pl.DataFrame({"carrier": ["AA"], "window_end": [AT]})
    folder.mkdir()
    for name in (half, "before"):
        written.write_parquet(folder / f"{name}-1.parquet")
    position = {"EWR": {"position": 120, "finished": True}}
    place = engine.checkpoints[half]
    engine.savepoints[place] = replace(
        next(iter(engine.savepoints.values())),
        location=place,
        source_positions={"flights": position},
    )
    crash(engine, FROM)
    ended = drive(promotion)
    assert [file.name for file in folder.iterdir()] == ["before-1.parquet"]
    assert "told may have windows since savepoint" in ended.error
    assert running(engine) == [("v1", WHOLE)]
    assert live(flights).restored_from == Savepoint.objects.get(origin="upgrade")


def test_it_can_be_cancelled_while_the_old_version_is_on_its_way(
    replay, flights, alice, engine, drive, clock
):
    promotion = on_its_way(promote_replay(replay, alice, at=AT), engine, clock)
    cancel_operation(promotion, alice, "it takes too long")
    ended = drive(promotion)
    assert (ended.state, running(engine)) == (Operation.State.CANCELLED, [("v1", WHOLE)])


def test_who_cancels_the_job_meanwhile_ends_both(replay, flights, alice, engine, drive, clock):
    on_its_way(promote_replay(replay, alice, at=AT), engine, clock)
    drive(jobs.cancel(flights, alice))
    assert running(engine) == []
    assert not flights.runs.exclude(state__in=["CANCELED", "FINISHED", "FAILED"]).exists()


@pytest.mark.parametrize(
    ("mark", "idle", "why"),
    [(AT + timedelta(days=1), False, "past 2013-12-31"), (NOW, True, "gives no rows")],
)
def test_what_cannot_get_there_in_time_leaves_everything_as_it_was(
    replay, flights, alice, engine, drive, mark, idle, why
):
    state = {"position": 100, "watermark": epoch_us(mark), "idle": idle, "finished": False}
    engine.splits = {"EWR": state}
    ended = drive(promote_replay(replay, alice, at=AT))
    replay.refresh_from_db()
    assert ended.state == Operation.State.FAILED
    assert why in ended.error
    assert running(engine) == [("v1", WHOLE)]
    assert (replay.status, replay.run.state) == (Replay.Status.CAUGHT_UP, "RUNNING")


def test_a_replay_that_got_past_the_cut_leaves_all_to_the_old_version(
    replay, flights, alice, engine, drive
):
    promotion = promote_replay(replay, alice, at=AT)

    def get_past_it(_point):
        promotion.refresh_from_db()
        if promotion.step == "stop_replay":
            engine.splits = {"EWR": {"watermark": epoch_us(AT + timedelta(days=1))}}

    ended = drive(promotion, get_past_it)
    assert "the replay had got to 2014-01-01 00:00:00 UTC already" in ended.error
    assert running(engine) == [("v1", WHOLE)]


@pytest.mark.parametrize("at", [None, AT])
def test_when_no_version_can_be_started_the_operation_says_so_and_what_to_do(
    replay, flights, alice, engine, drive, at
):
    engine.refuses_restore = "key groups do not fit"
    ended = drive(promote_replay(replay, alice, at=at))
    replay.refresh_from_db()
    stopped_at = Savepoint.objects.get(origin="upgrade")
    assert ended.state == Operation.State.FAILED
    assert ended.error.endswith(
        "no version of flights is known to run: unless one does, start version 1 from "
        f"savepoint {stopped_at.pk}"
    )
    assert [name for name, span in running(engine)] == []
    assert at is not None or replay.failure == ended.error


def test_a_cluster_whose_jobs_do_not_end_there_is_refused(replay, flights, alice, lab):
    lab.kind = lab.Kind.FLINK
    lab.save()
    with pytest.raises(Refused, match="Flink jobs do not end there"):
        promote_replay(replay, alice, at=AT)


def test_soon_is_what_is_proposed(replay, alice):
    promotion = promote_replay(replay, alice, at="soon")
    assert promotion.params["at"] == (NOW + timedelta(minutes=1)).isoformat()
    assert kind_of(promotion.kind).name == "cut_over"
