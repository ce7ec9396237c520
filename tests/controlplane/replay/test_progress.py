"""How a replay is doing, from samples alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.replay.progress import Sample, assess, percent, thin

DAY_MS = 86_400_000


def play(
    seconds: int, replay_speed: float, live_speed: float, gap_ms: int, pending: int | None = None
) -> list[Sample]:
    """A replay that begins `gap_ms` behind, a sample each second."""
    return [
        Sample(
            wall_ms=second * 1000,
            replay_ms=int(second * 1000 * replay_speed),
            live_ms=int(second * 1000 * live_speed) + gap_ms,
            pending_rows=pending,
        )
        for second in range(seconds)
    ]


def is_level(samples: list[Sample]) -> bool:
    return assess(samples).level


def test_speed_is_event_time_per_wall_time():
    found = assess(play(10, replay_speed=40.0, live_speed=1.0, gap_ms=DAY_MS))

    assert (found.speed, found.live_speed) == (pytest.approx(40.0), pytest.approx(1.0))


def test_a_steady_replay_meets_live_when_the_gap_is_closed():
    found = assess(play(10, replay_speed=41.0, live_speed=1.0, gap_ms=4_000_000))

    left_s = found.gap_ms / 1000 / 40
    assert found.eta_low_s == pytest.approx(left_s)
    assert found.eta_high_s == pytest.approx(left_s)
    assert found.note == ""


def test_a_wavering_replay_has_a_wider_range():
    slow = play(8, replay_speed=11.0, live_speed=1.0, gap_ms=DAY_MS)
    last = slow[-1]
    fast = [
        Sample(last.wall_ms + s * 1000, last.replay_ms + s * 31_000, last.live_ms + s * 1000)
        for s in range(1, 8)
    ]
    found = assess(slow + fast)

    assert found.eta_low_s < found.eta_high_s
    assert found.eta_high_s == pytest.approx(found.gap_ms / 1000 / 10, rel=0.2)


@pytest.mark.parametrize(("speed", "live"), [(1.0, 1.0), (0.5, 1.0)])
def test_a_replay_no_faster_than_live_never_meets_it(speed, live):
    found = assess(play(10, speed, live, DAY_MS))

    assert (found.eta_low_s, found.eta_high_s) == (None, None)
    assert found.note.startswith("not catching up: it plays")


def test_a_replay_that_stands_still_says_so():
    found = assess(play(10, 0.0, 1.0, DAY_MS))

    assert found.note == "not catching up: its event time stands still"


def test_it_is_level_when_the_gap_is_what_live_covers_in_five_seconds():
    assert is_level(play(5, 1.0, 1.0, gap_ms=5_000))
    assert not is_level(play(5, 1.0, 1.0, gap_ms=5_001))


def test_the_rule_fits_a_job_that_plays_a_day_in_a_second():
    assert is_level(play(5, 86_400.0, 86_400.0, gap_ms=5 * DAY_MS))
    assert not is_level(play(5, 86_400.0, 86_400.0, gap_ms=6 * DAY_MS))


def test_it_is_level_when_nothing_is_left_to_read():
    assert is_level(play(3, 1.0, 1.0, gap_ms=DAY_MS, pending=0))
    assert not is_level(play(3, 1.0, 1.0, gap_ms=DAY_MS, pending=1))


def test_somebody_may_say_how_near_is_level():
    samples = play(5, 1.0, 1.0, gap_ms=60_000)
    assert assess(samples, within_ms=60_000).level
    assert not assess(samples, within_ms=59_999).level


def test_it_is_behind_when_no_sample_of_the_last_three_is_level():
    far, near = Sample(4_000, 0, DAY_MS), Sample(4_000, 4_000, 4_000)
    assert assess(play(3, 1.0, 1.0, gap_ms=DAY_MS)).behind
    assert not assess([*play(2, 1.0, 1.0, gap_ms=DAY_MS), near]).behind
    assert not assess([*play(4, 1.0, 1.0, gap_ms=0), far]).behind


def test_two_samples_are_not_enough():
    assert not is_level(play(2, 1.0, 1.0, gap_ms=0, pending=0))


def test_one_bad_sample_among_the_last_three_is_enough_to_wait():
    samples = play(4, 1.0, 1.0, gap_ms=0)
    behind = Sample(4_000, 0, DAY_MS)

    assert not is_level([*samples[:3], behind, samples[3]])


def test_a_replay_that_has_not_reported_is_not_level():
    silent = [Sample(second * 1000, None, None, 0) for second in range(5)]

    assert not assess(silent).level
    assert assess(silent).eta_low_s is None


def test_a_live_job_that_has_stopped_is_level_with_at_its_position():
    assert is_level(play(5, 0.0, 0.0, gap_ms=0))
    assert not is_level(play(5, 0.0, 0.0, gap_ms=1))


def test_nothing_is_known_of_no_samples():
    found = assess([])

    assert (found.speed, found.gap_ms, found.level) == (None, None, False)


def test_what_was_before_a_restart_says_nothing_of_the_speed_after_it():
    before = play(5, 40.0, 1.0, gap_ms=DAY_MS)
    after = [
        Sample(5_000 + second * 1000, second * 20_000, DAY_MS + second * 1000, restarts=1)
        for second in range(3)
    ]
    assert assess([*before, *after]).speed == pytest.approx(20.0)
    assert assess([*before, after[0]]).speed is None
    assert not is_level([*play(3, 1.0, 1.0, gap_ms=0), Sample(3_000, 0, 0, restarts=1)])


def test_event_time_that_is_set_back_is_no_negative_speed():
    found = assess([Sample(0, DAY_MS, 2 * DAY_MS), Sample(1_000, 0, DAY_MS)])
    assert (found.speed, found.live_speed) == (0.0, 0.0)


def test_a_meeting_in_many_years_is_none():
    almost = [Sample(at, at * 1000 + at // 1000, at * 1000 + 10**13) for at in range(0, 9000, 1000)]
    found = assess(almost)
    assert (found.eta_low_s, found.eta_high_s) == (None, None)
    assert found.note.startswith("not catching up")


times = st.integers(0, 10**13) | st.none()
samples = st.lists(
    st.builds(Sample, st.integers(0, 10**6), times, times, st.integers(0, 10) | st.none()),
    max_size=30,
).map(lambda found: sorted(found, key=lambda sample: sample.wall_ms))


@given(samples)
def test_no_samples_give_a_negative_or_infinite_figure(found_samples):
    found = assess(found_samples)

    for seconds in (found.eta_low_s, found.eta_high_s):
        assert seconds is None or 0.0 <= seconds < float("inf")
    if found.eta_low_s is not None:
        assert found.eta_low_s <= found.eta_high_s
    if found.level:
        assert found.eta_low_s is None


@pytest.mark.parametrize(
    ("replay_ms", "live_ms", "wanted"),
    [(0, 100, 0.0), (50, 100, 50.0), (100, 100, 100.0), (120, 100, 100.0), (-5, 100, 0.0)],
)
def test_percent_is_the_part_of_the_way_to_live(replay_ms, live_ms, wanted):
    assert percent(0, Sample(0, replay_ms, live_ms)) == wanted


def test_a_long_history_is_thinned_and_keeps_both_ends():
    points = [[at, at, at] for at in range(1_001)]
    kept = thin(points, most=100)

    assert len(kept) <= 100
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert kept == sorted(kept)
