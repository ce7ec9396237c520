"""The restart strategy that a job's settings ask for, under Flink's names.

restart-strategy.type           exponential-delay; none, fixed-delay, failure-rate
restart-strategy.fixed-delay.   attempts 1, delay 1s
restart-strategy.failure-rate.  max-failures-per-interval 1, failure-rate-interval 1min, delay 1s
restart-strategy.exponential-delay.
    initial-backoff 100ms, max-backoff 10s, backoff-multiplier 2.0, jitter-factor 0.1,
    reset-backoff-threshold 1min, attempts-before-reset-backoff without end

Errors   ConfigError, with the setting and what to pass.

Defaults are Flink's, but for the exponential delay: workers start within a second here, so a
first delay of 100 ms is most of what a restart costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from engine.cluster.jobs.restart_strategies import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    Strategy,
)
from engine.cluster.settings.job_settings import milliseconds, whole_number
from engine.errors import ConfigError

TYPE, TYPE_SHORT = "restart-strategy.type", "restart-strategy"
FIXED = "restart-strategy.fixed-delay"
RATE = "restart-strategy.failure-rate"
EXPONENTIAL = "restart-strategy.exponential-delay"

WITHOUT_END = 2**31 - 1
"""Flink's way to say it."""


def strategy_of(settings: Mapping[str, str]) -> Strategy:
    """The strategy that a job's settings ask for. Raises ConfigError.

    >>> str(strategy_of({}))
    'exponential delay, 100ms to 10s'
    >>> str(strategy_of({"restart-strategy.type": "fixed-delay"}))
    'fixed delay, 1 × 1s'
    """
    kind = settings.get(TYPE, settings.get(TYPE_SHORT, "exponential-delay"))
    match kind.strip().lower():
        case "none" | "off" | "disable":
            return NoRestart()
        case "fixed-delay" | "fixeddelay":
            return _fixed(settings)
        case "failure-rate" | "failurerate":
            return _rate(settings)
        case "exponential-delay" | "exponentialdelay":
            return _exponential(settings)
        case _:
            msg = (
                f"setting {TYPE} is not known: got {kind!r}; "
                "use exponential-delay, failure-rate, fixed-delay or none"
            )
            raise ConfigError(msg)


def _fixed(settings: Mapping[str, str]) -> FixedDelay:
    return FixedDelay(
        whole_number(settings, f"{FIXED}.attempts", 1, least=0),
        milliseconds(settings, _name_of_delay(settings), "1s"),
    )


def _name_of_delay(settings: Mapping[str, str]) -> str:
    ours = f"{FIXED}.delay-ms"
    return ours if ours in settings else f"{FIXED}.delay"


def _rate(settings: Mapping[str, str]) -> FailureRate:
    return FailureRate(
        whole_number(settings, f"{RATE}.max-failures-per-interval", 1, least=0),
        milliseconds(settings, f"{RATE}.failure-rate-interval", "1min"),
        milliseconds(settings, f"{RATE}.delay", "1s"),
    )


def _exponential(settings: Mapping[str, str]) -> ExponentialDelay:
    attempts = whole_number(
        settings, f"{EXPONENTIAL}.attempts-before-reset-backoff", WITHOUT_END, least=0
    )
    found = ExponentialDelay(
        initial_ms=milliseconds(settings, f"{EXPONENTIAL}.initial-backoff", "100ms"),
        max_ms=milliseconds(settings, f"{EXPONENTIAL}.max-backoff", "10s"),
        multiplier=_number(settings, f"{EXPONENTIAL}.backoff-multiplier", 2.0, 1.0, math.inf),
        reset_ms=milliseconds(settings, f"{EXPONENTIAL}.reset-backoff-threshold", "1min"),
        jitter=_number(settings, f"{EXPONENTIAL}.jitter-factor", 0.1, 0.0, 1.0),
        attempts=None if attempts >= WITHOUT_END else attempts,
    )
    if not 0 < found.initial_ms <= found.max_ms:
        msg = (
            f"setting {EXPONENTIAL}.initial-backoff must be above zero and not above max-backoff: "
            f"got {found.initial_ms} ms and {found.max_ms} ms; pass e.g. 1s and 1min"
        )
        raise ConfigError(msg)
    return found


def _number(
    settings: Mapping[str, str], key: str, default: float, least: float, most: float
) -> float:
    text = settings.get(key, str(default))
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most or math.isinf(number):
        bounds = f"at least {least:g}" if math.isinf(most) else f"from {least:g} to {most:g}"
        msg = f"setting {key} must be a number, {bounds}: got {text!r}; pass e.g. {default:g}"
        raise ConfigError(msg)
    return number
