"""Schedules of chaos: what a seed does, and that the short list does everything."""

from __future__ import annotations

from engine.testing.chaos.schedule import BACKENDS, KILLS, REQUESTS, SHORT_LIST, Act, schedule_of


def test_a_seed_is_one_schedule() -> None:
    assert schedule_of(7) == schedule_of(7)
    assert schedule_of(7) != schedule_of(8)


def test_a_schedule_says_what_is_done_and_when() -> None:
    assert str(schedule_of(86)).splitlines() == [
        "seed 86: memory, parallelism 1, while it starts",
        "  after 1.79 s stop the job manager for a while (1.2 s)",
        "  after 0.69 s take a savepoint",
        "  after 0.07 s kill -9 a task manager",
    ]


def test_the_short_list_does_everything_on_both_backends() -> None:
    schedules = [schedule_of(seed) for seed in SHORT_LIST]
    assert {deed.act for schedule in schedules for deed in schedule.deeds} == set(Act)
    assert {schedule.backend for schedule in schedules} == set(BACKENDS)


def test_the_short_list_hits_what_is_under_way_and_what_was_hit_a_moment_ago() -> None:
    hit = {
        before.act
        for schedule in map(schedule_of, SHORT_LIST)
        for before, deed in zip(schedule.deeds, schedule.deeds[1:], strict=False)
        if deed.act in KILLS and deed.after_s < 0.15
    }
    assert hit >= REQUESTS
    assert hit & set(KILLS)
