"""When a failed job starts again."""

from random import Random

import pytest

from engine.cluster.jobs.restart import Cause, GiveUp, Restart, RestartPolicy
from engine.cluster.jobs.restart_strategies import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
)
from engine.errors import Domain

KILLED = Cause(Domain.EXTERNAL, "WorkerLost", "worker process 7 was killed by signal 9")
POISON = Cause(Domain.USER, "FunctionError", "operator 'parse' failed on row {…}", "parse")
BUG = Cause(Domain.INTERNAL, "KeyError", "'x'", "daily")
WRONG = Cause(Domain.USER, "ConfigError", "no url is configured")


def steady(**settings) -> ExponentialDelay:
    return ExponentialDelay(jitter=0, **settings)


def delays(strategy, times, seed=0) -> list[int | None]:
    chance = Random(seed)
    return [strategy.on_failure(at, chance) for at in times]


def test_a_killed_worker_is_replaced_without_end_ever_more_slowly():
    policy = RestartPolicy(steady())
    decisions = [policy.on_failure(KILLED, at) for at in range(10)]
    assert decisions == [
        Restart(ms) for ms in (100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000)
    ]


@pytest.mark.parametrize(("quiet_ms", "delay_ms"), [(60_000, 200), (60_001, 100)])
def test_after_a_minute_of_quiet_since_the_restart_the_delays_begin_anew(quiet_ms, delay_ms):
    assert delays(steady(), [0, 100 + quiet_ms]) == [100, delay_ms]


def test_delays_grow_by_the_multiplier():
    strategy = steady(initial_ms=1_000, max_ms=60_000, multiplier=1.5)
    assert delays(strategy, range(4)) == [1_000, 1_500, 2_250, 3_375]


def test_jitter_varies_delays_within_its_part_and_the_same_seed_gives_the_same():
    strategy = ExponentialDelay(initial_ms=1_000, max_ms=64_000, jitter=0.5)
    found = delays(strategy, range(7), seed=7)
    assert found == delays(ExponentialDelay(1_000, 64_000, jitter=0.5), range(7), seed=7)
    assert found != delays(ExponentialDelay(1_000, 64_000, jitter=0.5), range(7), seed=8)
    for step, delay_ms in enumerate(found):
        plain = 1_000 * 2**step
        assert max(1_000, plain / 2) <= delay_ms <= min(64_000, plain * 1.5)


def test_exponential_delays_may_be_limited_in_a_row():
    strategy = steady(attempts=2)
    assert delays(strategy, [0, 1, 2, 100_000]) == [100, 200, None, 100]


@pytest.mark.parametrize("cause", [POISON, BUG])
def test_the_same_failure_of_code_three_times_in_a_row_fails_the_job(cause):
    policy = RestartPolicy(steady())
    assert policy.on_failure(cause, 1) == Restart(100)
    assert policy.on_failure(cause, 2) == Restart(200)
    assert policy.on_failure(cause, 3) == GiveUp("failed 3 times in a row for the same reason")


def test_another_failure_in_between_starts_the_count_again():
    policy = RestartPolicy()
    for at, cause in enumerate([POISON, POISON, KILLED, POISON, POISON]):
        assert isinstance(policy.on_failure(cause, at), Restart)


@pytest.mark.parametrize("strategy", [ExponentialDelay(), FixedDelay(9), FailureRate(9)])
def test_what_running_again_cannot_help_fails_the_job_at_once(strategy):
    assert RestartPolicy(strategy).on_failure(WRONG, 1) == GiveUp("starting again cannot help")


def test_who_chose_a_number_of_restarts_meant_it():
    policy = RestartPolicy(FixedDelay(attempts=5, wait_ms=50))
    assert [policy.on_failure(POISON, at) for at in range(5)] == [Restart(50)] * 5
    assert policy.on_failure(POISON, 5) == GiveUp("no restart is left: fixed delay, 5 × 50ms")


def test_a_fixed_number_of_restarts_is_for_the_whole_life_of_the_job():
    year = 365 * 86_400_000
    assert delays(FixedDelay(attempts=2, wait_ms=50), [0, year, 2 * year]) == [50, 50, None]


def test_without_restarts_the_first_failure_fails_the_job():
    assert RestartPolicy(NoRestart()).on_failure(KILLED, 1) == GiveUp(
        "no restart is left: no restart"
    )


def test_a_rate_of_failures_counts_those_within_the_interval_only():
    strategy = FailureRate(max_failures=2, interval_ms=1_000, wait_ms=10)
    assert delays(strategy, [0, 500, 1_001, 1_501, 2_001]) == [10, 10, 10, 10, None]


def test_a_damaged_snapshot_fails_the_job_because_it_does_not_heal():
    damaged = Cause(Domain.EXTERNAL, "SnapshotCorrupt", "file x is altered", None)
    policy = RestartPolicy()
    decisions = [policy.on_failure(damaged, at) for at in (1, 2, 3)]
    assert [type(decision) for decision in decisions] == [Restart, Restart, GiveUp]
