"""Restart strategies as settings choose them."""

import pytest

from engine.cluster.jobs.restart_settings import strategy_of
from engine.cluster.jobs.restart_strategies import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
)
from engine.errors import ConfigError
from engine.stream.setting_names import check_setting_names

NAME = "restart-strategy"


@pytest.mark.parametrize(
    ("settings", "strategy"),
    [
        ({}, ExponentialDelay(100, 10_000, 2.0, 60_000, 0.1)),
        ({f"{NAME}": "off"}, NoRestart()),
        ({f"{NAME}.type": "none"}, NoRestart()),
        ({f"{NAME}.type": "fixed-delay"}, FixedDelay(1, 1_000)),
        (
            {
                f"{NAME}.type": "fixed-delay",
                f"{NAME}.fixed-delay.attempts": "5",
                f"{NAME}.fixed-delay.delay": "10 s",
            },
            FixedDelay(5, 10_000),
        ),
        (
            {f"{NAME}.type": "fixed-delay", f"{NAME}.fixed-delay.delay-ms": "20"},
            FixedDelay(1, 20),
        ),
        (
            {
                f"{NAME}.type": "failure-rate",
                f"{NAME}.failure-rate.max-failures-per-interval": "3",
                f"{NAME}.failure-rate.failure-rate-interval": "PT5M",
                f"{NAME}.failure-rate.delay": "2s",
            },
            FailureRate(3, 300_000, 2_000),
        ),
        (
            {
                f"{NAME}.exponential-delay.initial-backoff": "1s",
                f"{NAME}.exponential-delay.max-backoff": "1 min",
                f"{NAME}.exponential-delay.backoff-multiplier": "1.5",
                f"{NAME}.exponential-delay.reset-backoff-threshold": "1h",
                f"{NAME}.exponential-delay.jitter-factor": "0",
                f"{NAME}.exponential-delay.attempts-before-reset-backoff": "7",
            },
            ExponentialDelay(1_000, 60_000, 1.5, 3_600_000, 0.0, 7),
        ),
    ],
)
def test_settings_choose_the_strategy_under_flinks_names(settings, strategy):
    check_setting_names(settings)
    assert strategy_of(settings) == strategy


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("type", "sometimes", "got 'sometimes'; use exponential-delay, failure-rate"),
        ("exponential-delay.jitter-factor", "2", "must be a number, from 0 to 1: got '2'"),
        ("exponential-delay.backoff-multiplier", "0.5", "at least 1: got '0.5'; pass e.g. 2"),
        ("exponential-delay.backoff-multiplier", "inf", "at least 1: got 'inf'; pass e.g. 2"),
        ("exponential-delay.max-backoff", "1ms", "above max-backoff: got 100 ms and 1 ms"),
        ("exponential-delay.initial-backoff", "soon", "is not a length of time: got 'soon'"),
    ],
)
def test_a_wrong_setting_says_what_to_pass(name, value, sentence):
    with pytest.raises(ConfigError, match=sentence):
        strategy_of({f"{NAME}.{name}": value})


def test_a_count_that_is_none_is_refused():
    settings = {f"{NAME}.type": "fixed-delay", f"{NAME}.fixed-delay.attempts": "many"}
    with pytest.raises(ConfigError, match="must be a whole number, at least 0: got 'many'; pass"):
        strategy_of(settings)
