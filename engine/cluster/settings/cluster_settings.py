"""Settings of a whole cluster, given to the job manager as -D NAME=VALUE, under Flink's names.

heartbeat.interval        1s   how often task managers say that they are alive
heartbeat.timeout         10s  after how long a silent one is lost; a worker, after twice as long
jobstore.expiration-time  7d   how long an ended job is remembered, see retention.py
jobstore.max-capacity     500  how many of them

Errors   ConfigError, with the name that was probably meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.cluster.forgetting import WEEK, Rules
from engine.cluster.settings.job_settings import milliseconds, whole_number
from engine.errors import ConfigError
from engine.stream.setting_names import probably_meant

INTERVAL, TIMEOUT = "heartbeat.interval", "heartbeat.timeout"
EXPIRATION, CAPACITY = "jobstore.expiration-time", "jobstore.max-capacity"
KNOWN = (INTERVAL, TIMEOUT, EXPIRATION, CAPACITY)


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """How often task managers beat, and when silence means that one is lost."""

    interval_ms: int = 1_000
    timeout_ms: int = 10_000


EVERY_SECOND = Heartbeats()


def parse_settings(given: Iterable[str]) -> Mapping[str, str]:
    """Read what follows each -D. Raises ConfigError.

    >>> parse_settings(["heartbeat.timeout=5 s"])
    {'heartbeat.timeout': '5 s'}
    """
    settings = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            msg = f"setting must be NAME=VALUE: got {text!r}; pass e.g. -D {TIMEOUT}=10s"
            raise ConfigError(msg)
        if name not in KNOWN:
            hint = probably_meant(name, KNOWN)
            msg = f"setting {name!r} of a cluster is not known, and would have no effect; {hint}"
            raise ConfigError(msg)
        settings[name] = value
    return settings


def heartbeats_of(settings: Mapping[str, str]) -> Heartbeats:
    """When task managers beat, and when they are lost. Raises ConfigError.

    >>> heartbeats_of({"heartbeat.interval": "PT2S"})
    Heartbeats(interval_ms=2000, timeout_ms=10000)
    """
    found = Heartbeats(
        milliseconds(settings, INTERVAL, "1s"), milliseconds(settings, TIMEOUT, "10s")
    )
    if not 0 < 2 * found.interval_ms <= found.timeout_ms:
        msg = (
            f"setting {TIMEOUT} must be at least twice {INTERVAL}, since one beat may be late: "
            f"got {found.timeout_ms} ms and {found.interval_ms} ms; pass e.g. 10s and 1s"
        )
        raise ConfigError(msg)
    return found


def rules_of(settings: Mapping[str, str]) -> Rules:
    """How long ended jobs are remembered. Raises ConfigError.

    >>> rules_of({"jobstore.max-capacity": "10", "jobstore.expiration-time": "1h"})
    Rules(max_capacity=10, expiration_ms=3600000)
    """
    return Rules(
        whole_number(settings, CAPACITY, WEEK.max_capacity, least=0),
        milliseconds(settings, EXPIRATION, f"{WEEK.expiration_ms}ms"),
    )
