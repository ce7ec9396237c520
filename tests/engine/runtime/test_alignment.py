"""Barrier alignment: which channels wait, and when the snapshot is due."""

from __future__ import annotations

from engine.elements import Barrier, Micros
from engine.runtime.alignment import Aligned, Alignment

NOW = Micros(5)


def barrier(checkpoint_id: int) -> Barrier:
    return Barrier(checkpoint_id)


def test_a_single_channel_is_aligned_at_once() -> None:
    assert Alignment(1).on_barrier(0, barrier(1), NOW) == Aligned(barrier(1), NOW)


def test_a_channel_waits_from_its_barrier_until_the_last_one() -> None:
    alignment = Alignment(2)
    assert alignment.on_barrier(0, barrier(1), Micros(3)) is None
    assert (alignment.blocks(0), alignment.blocks(1)) == (True, False)
    assert alignment.on_barrier(1, barrier(1), NOW) == Aligned(barrier(1), Micros(3))
    assert not alignment.blocks(0)


def test_a_newer_barrier_gives_the_older_alignment_up() -> None:
    alignment = Alignment(3)
    alignment.on_barrier(0, barrier(1), NOW)
    assert alignment.on_barrier(1, barrier(2), NOW) is None
    assert [alignment.blocks(channel) for channel in range(3)] == [False, True, False]
    assert alignment.on_barrier(0, barrier(2), NOW) is None
    assert alignment.on_barrier(2, barrier(1), NOW) is None
    assert alignment.on_barrier(2, barrier(2), NOW) == Aligned(barrier(2), NOW)


def test_an_aborted_checkpoint_blocks_nothing_and_its_late_barriers_are_dropped() -> None:
    alignment = Alignment(2)
    alignment.on_barrier(0, barrier(1), NOW)
    alignment.abort(1)
    assert not alignment.blocks(0)
    assert alignment.on_barrier(1, barrier(1), NOW) is None
    assert not alignment.blocks(1)


def test_an_abort_of_an_older_checkpoint_leaves_the_present_one_alone() -> None:
    alignment = Alignment(2)
    alignment.on_barrier(0, barrier(2), NOW)
    alignment.abort(1)
    assert alignment.blocks(0)


def test_an_abort_of_a_newer_checkpoint_leaves_the_present_one_alone() -> None:
    alignment = Alignment(2)
    alignment.on_barrier(0, barrier(1), NOW)
    alignment.abort(2)
    assert alignment.on_barrier(1, barrier(1), NOW) == Aligned(barrier(1), NOW)
    assert alignment.on_barrier(0, barrier(2), NOW) is None
    assert not alignment.blocks(0)


def test_an_older_checkpoint_is_aligned_after_a_newer_one_was_aborted() -> None:
    alignment = Alignment(2)
    alignment.abort(2)
    alignment.on_barrier(0, barrier(1), NOW)
    assert alignment.on_barrier(1, barrier(1), NOW) == Aligned(barrier(1), NOW)


def test_checkpoints_under_way_are_aligned_one_after_the_other() -> None:
    alignment = Alignment(2)
    for checkpoint_id in (1, 2):
        alignment.on_barrier(0, barrier(checkpoint_id), NOW)
        aligned = alignment.on_barrier(1, barrier(checkpoint_id), NOW)
        assert aligned == Aligned(barrier(checkpoint_id), NOW)


def test_an_ended_channel_is_not_waited_for() -> None:
    alignment = Alignment(2)
    assert alignment.on_end_of_input(1) is None
    assert alignment.on_barrier(0, barrier(1), NOW) == Aligned(barrier(1), NOW)
    assert alignment.on_barrier(1, barrier(1), NOW) is None
    assert not alignment.blocks(1)


def test_the_end_of_the_last_channel_that_is_waited_for_completes_the_alignment() -> None:
    alignment = Alignment(2)
    alignment.on_barrier(0, barrier(1), NOW)
    assert alignment.on_end_of_input(1) == Aligned(barrier(1), NOW)


def test_barriers_still_pass_when_every_channel_has_ended() -> None:
    alignment = Alignment(2)
    alignment.on_end_of_input(0)
    alignment.on_end_of_input(1)
    assert alignment.on_barrier(0, barrier(1), NOW) == Aligned(barrier(1), NOW)
    assert alignment.on_barrier(1, barrier(1), NOW) is None
    assert alignment.on_barrier(1, barrier(2), NOW) == Aligned(barrier(2), NOW)
