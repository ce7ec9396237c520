"""The time of day through leaps of the wall clock."""

from __future__ import annotations

from engine.clock import WallClock

HOUR, SECOND = 3_600 * 10**9, 10**9


class Clocks:
    """A wall clock that can be set, and a steady one that cannot."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_000 * HOUR, 0
        self.clock = WallClock(lambda: self.wall, lambda: self.steady)

    def after(self, seconds: int, *, leap: int = 0) -> int:
        self.steady += seconds * SECOND
        self.wall += seconds * SECOND + leap
        return self.clock.now() - 1_000 * HOUR


def test_it_follows_the_wall() -> None:
    clocks = Clocks()
    assert clocks.after(5) == 5 * SECOND


def test_it_follows_a_leap_forward_and_a_small_correction_back() -> None:
    clocks = Clocks()
    assert clocks.after(1, leap=HOUR) == HOUR + SECOND
    assert clocks.after(1, leap=-SECOND // 2) == HOUR + 2 * SECOND - SECOND // 2


def test_a_leap_back_neither_stops_it_nor_turns_it_back() -> None:
    clocks = Clocks()
    before = clocks.after(1)
    assert clocks.after(1, leap=-HOUR) == before + SECOND
    assert clocks.after(1) == before + 2 * SECOND


def test_after_a_leap_back_it_follows_the_wall_again_once_that_has_caught_up() -> None:
    clocks = Clocks()
    clocks.after(0, leap=-HOUR)
    assert clocks.after(2, leap=HOUR) == 2 * SECOND
