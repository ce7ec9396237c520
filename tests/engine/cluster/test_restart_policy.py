"""When a failed job starts again."""

import pytest

from engine.cluster.restart import (
    Cause,
    ExponentialDelay,
    FixedDelay,
    GiveUp,
    Restart,
    RestartPolicy,
    strategy_of,
)
from engine.errors import ConfigError, Domain

KILLED = Cause(Domain.EXTERNAL, "WorkerLost", "worker process 7 was killed by signal 9")
POISON = Cause(Domain.USER, "FunctionError", "operator 'parse' failed on row {…}", "parse")
BUG = Cause(Domain.INTERNAL, "KeyError", "'x'", "daily")
WRONG = Cause(Domain.USER, "ConfigError", "no url is configured")


def test_a_killed_worker_is_replaced_without_end_ever_more_slowly():
    policy = RestartPolicy()
    delays = [policy.on_failure(KILLED, at) for at in range(10)]
    assert delays == [
        Restart(ms) for ms in (100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000)
    ]


@pytest.mark.parametrize(("quiet_ms", "delay_ms"), [(60_000, 200), (60_001, 100)])
def test_after_a_minute_of_quiet_the_delays_begin_anew(quiet_ms, delay_ms):
    policy = RestartPolicy()
    policy.on_failure(KILLED, 1_000_000)
    assert policy.on_failure(KILLED, 1_000_000 + quiet_ms) == Restart(delay_ms)


@pytest.mark.parametrize("cause", [POISON, BUG])
def test_the_same_failure_of_code_three_times_in_a_row_fails_the_job(cause):
    policy = RestartPolicy()
    assert policy.on_failure(cause, 1) == Restart(100)
    assert policy.on_failure(cause, 2) == Restart(200)
    assert policy.on_failure(cause, 3) == GiveUp("failed 3 times in a row for the same reason")


def test_another_failure_in_between_starts_the_count_again():
    policy = RestartPolicy()
    for at, cause in enumerate([POISON, POISON, KILLED, POISON, POISON]):
        assert isinstance(policy.on_failure(cause, at), Restart)


def test_what_running_again_cannot_help_fails_the_job_at_once():
    assert isinstance(RestartPolicy().on_failure(WRONG, 1), GiveUp)


def test_a_fixed_number_of_restarts_is_not_exceeded():
    policy = RestartPolicy(FixedDelay(attempts=2, wait_ms=50))
    assert [policy.on_failure(KILLED, at) for at in (1, 2)] == [Restart(50)] * 2
    assert policy.on_failure(KILLED, 3) == GiveUp("no restart is left: fixed delay, 2 × 50 ms")


def test_settings_choose_the_strategy():
    settings = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "5",
        "restart-strategy.fixed-delay.delay-ms": "20",
    }
    assert strategy_of(settings) == FixedDelay(5, 20)
    assert strategy_of({}) == ExponentialDelay()


@pytest.mark.parametrize(
    "settings",
    [
        {"restart-strategy.type": "sometimes"},
        {
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "many",
        },
    ],
)
def test_a_wrong_setting_says_what_to_pass(settings):
    with pytest.raises(ConfigError, match=r"got '(sometimes|many)'; (use|pass)"):
        strategy_of(settings)


def test_a_damaged_snapshot_fails_the_job_because_it_does_not_heal():
    damaged = Cause(Domain.EXTERNAL, "SnapshotCorrupt", "file x is altered", None)
    policy = RestartPolicy()
    decisions = [policy.on_failure(damaged, at) for at in (1, 2, 3)]
    assert [type(decision) for decision in decisions] == [Restart, Restart, GiveUp]
