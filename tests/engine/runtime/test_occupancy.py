"""How the time of a subtask's thread is divided."""

from engine.runtime.worker_occupancy import Occupancy, Shares


def test_a_thread_that_never_waits_is_busy():
    assert Occupancy(now=0.0).shares(now=2.0) == Shares(busy=1000, backpressured=0, idle=0)


def test_waits_are_divided_by_their_reason_and_the_shares_sum_to_a_second():
    occupancy = Occupancy(now=0.0)
    occupancy.wait(backpressured=True, now=1.0)
    assert occupancy.resume(now=1.5) == 0.5
    occupancy.wait(backpressured=False, now=1.5)
    occupancy.resume(now=2.5)
    assert occupancy.shares(now=4.0) == Shares(busy=625, backpressured=125, idle=250)


def test_a_wait_that_goes_on_counts_up_to_now_and_only_once():
    occupancy = Occupancy(now=0.0)
    occupancy.wait(backpressured=False, now=0.0)
    assert occupancy.shares(now=1.0) == Shares(busy=0, backpressured=0, idle=1000)
    assert occupancy.shares(now=2.0) == Shares(busy=0, backpressured=0, idle=1000)
    occupancy.resume(now=2.5)
    assert occupancy.totals(now=3.0) == (0.0, 2.5)


def test_who_waits_for_credits_is_backpressured_until_it_is_awake():
    occupancy = Occupancy(now=0.0)
    occupancy.wait(backpressured=True, now=1.0)
    assert occupancy.is_backpressured
    occupancy.resume(now=2.0)
    assert not occupancy.is_backpressured
    occupancy.wait(backpressured=False, now=2.0)
    assert not occupancy.is_backpressured
