"""Event time over several input channels."""

from __future__ import annotations

from engine.elements import MAX_TIME, EndOfInput, Idle, Micros, Watermark
from engine.runtime.inputs import InputTimes


def test_the_slowest_channel_decides() -> None:
    times = InputTimes(2)
    assert times.on_watermark(0, Micros(10)) is None
    assert times.on_watermark(1, Micros(4)) == Watermark(Micros(4))
    assert times.on_watermark(1, Micros(30)) == Watermark(Micros(10))


def test_an_idle_channel_is_not_waited_for() -> None:
    times = InputTimes(2)
    times.on_watermark(0, Micros(10))
    assert times.on_idle(1) == Watermark(Micros(10))


def test_event_time_never_goes_back_when_an_idle_channel_wakes_behind() -> None:
    times = InputTimes(2)
    times.on_watermark(0, Micros(10))
    times.on_idle(1)
    assert times.on_watermark(1, Micros(3)) is None
    assert times.on_watermark(1, Micros(11)) is None
    assert times.on_watermark(0, Micros(20)) == Watermark(Micros(11))


def test_idleness_is_said_once_and_again_after_rows() -> None:
    times = InputTimes(1)
    assert times.on_idle(0) == Idle()
    assert times.on_idle(0) is None
    times.on_batch(0)
    assert times.on_idle(0) == Idle()


def test_a_finished_channel_beside_an_idle_one_is_idle_not_finished() -> None:
    times = InputTimes(2)
    times.on_watermark(0, MAX_TIME)
    assert times.on_end_of_input(0) is None
    assert times.on_idle(1) == Idle()
    assert times.on_watermark(1, Micros(5)) == Watermark(Micros(5))


def test_input_ends_when_the_last_channel_has_ended() -> None:
    times = InputTimes(2)
    times.on_watermark(0, MAX_TIME)
    times.on_end_of_input(0)
    assert times.on_watermark(1, MAX_TIME) == Watermark(MAX_TIME)
    assert times.on_end_of_input(1) == EndOfInput()
