"""A job's settings: what each means, its default, and what values it may have.

    parallelism                 subtasks of each operator            1 … 128, default 1
    arguments                   what the job file gets as sys.argv   at most 100 of 1,000 characters
    control_port                port of the job's control stream     0: it has none
    checkpoint_interval_ms      between two checkpoints              100 … 1 day, default 1,000
    checkpoint_timeout_ms       a checkpoint that takes longer is given up    1 s … 1 day
    checkpoint_min_pause_ms     from the end of one to the next               0 … 1 day
    incremental                 checkpoints hold what has changed
    state_backend               memory or rocksdb
    restart_strategy            exponential-delay, fixed-delay, failure-rate or none
    restart_attempts            restarts (fixed-delay), failures a minute (failure-rate)
    restart_delay_ms            before a restart; the first one of an exponential delay
    require_state               never start without a snapshot       default no
    tags                        words by which people find the job
    delay_objective_s           how far the watermark may be behind           0: none
    recovery_point_objective_s  how old the newest snapshot may become        0: none

    None of a value without a default here leaves it to the job file, and then to the engine.

Errors   Refused (400) with the field and one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from controlplane.access.errors import invalid
from controlplane.backends.contract import SETTING_CHECKPOINT_INTERVAL, SETTING_NAME
from controlplane.jobs import setting_rules as rules
from controlplane.jobs.setting_rules import checked_parallelism, split_arguments

__all__ = ["JobSettings", "checked_parallelism", "settings_from", "split_arguments"]

DAY_S, DAY_MS = 86_400, 86_400_000
YEAR_S = 366 * DAY_S
BACKENDS = ("memory", "rocksdb")
RESTARTS = ("exponential-delay", "fixed-delay", "failure-rate", "none")
_CHECKPOINTING = "execution.checkpointing"
_COUNTS = {"fixed-delay": "attempts", "failure-rate": "max-failures-per-interval"}
_DELAYS = {
    "fixed-delay": "delay",
    "failure-rate": "delay",
    "exponential-delay": "initial-backoff",
}


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Checked settings of a job."""

    parallelism: int = 1
    arguments: tuple[str, ...] = ()
    control_port: int = 0
    checkpoint_interval_ms: int = 1_000
    checkpoint_timeout_ms: int | None = None
    checkpoint_min_pause_ms: int | None = None
    incremental: bool | None = None
    state_backend: str | None = None
    restart_strategy: str | None = None
    restart_attempts: int | None = None
    restart_delay_ms: int | None = None
    require_state: bool = False
    tags: tuple[str, ...] = ()
    delay_objective_s: int = 0
    recovery_point_objective_s: int = 0

    def as_json(self) -> dict[str, Any]:
        """What the database keeps."""
        return asdict(self) | {"arguments": list(self.arguments), "tags": list(self.tags)}

    def for_engine(self, name: str) -> dict[str, str]:
        """The engine's settings of a run called `name`; what nobody chose is left out."""
        chosen: dict[str, object] = {
            SETTING_NAME: name,
            SETTING_CHECKPOINT_INTERVAL: f"{self.checkpoint_interval_ms}ms",
            f"{_CHECKPOINTING}.timeout": _ms(self.checkpoint_timeout_ms),
            f"{_CHECKPOINTING}.min-pause": _ms(self.checkpoint_min_pause_ms),
            f"{_CHECKPOINTING}.incremental": self.incremental,
            "state.backend": self.state_backend,
            **self._restarts(),
        }
        # Engines want `true`, where Python writes `True`.
        return {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in chosen.items()
            if value is not None
        }

    def _restarts(self) -> dict[str, object]:
        kind = self.restart_strategy
        if kind is None:
            return {}
        found: dict[str, object] = {"restart-strategy.type": kind}
        if kind in _COUNTS:
            found[f"restart-strategy.{kind}.{_COUNTS[kind]}"] = self.restart_attempts
        if kind in _DELAYS:
            found[f"restart-strategy.{kind}.{_DELAYS[kind]}"] = _ms(self.restart_delay_ms)
        return found


DEFAULTS = JobSettings()


def settings_from(values: Mapping[str, Any]) -> JobSettings:
    """Checked settings; what is not given has its default. Raises Refused."""
    unknown = sorted(set(values) - set(asdict(DEFAULTS)))
    if unknown:
        msg = f"settings cannot have {unknown[0]}: use {', '.join(asdict(DEFAULTS))}"
        raise invalid(msg)
    given = DEFAULTS.as_json() | dict(values)
    return JobSettings(
        parallelism=checked_parallelism(given["parallelism"]),
        arguments=rules.arguments(given["arguments"]),
        control_port=rules.whole("control_port", given["control_port"], 0, 65_535),
        require_state=rules.truth("require_state", given["require_state"]),
        tags=rules.tags(given["tags"]),
        delay_objective_s=_seconds("delay_objective_s", given),
        recovery_point_objective_s=_seconds("recovery_point_objective_s", given),
        **_checkpointing(given),
        **_restarting(given),
    )


def _checkpointing(given: Mapping[str, Any]) -> dict[str, Any]:
    interval, timeout = "checkpoint_interval_ms", "checkpoint_timeout_ms"
    pause = "checkpoint_min_pause_ms"
    return {
        interval: rules.whole(interval, given[interval], 100, DAY_MS),
        timeout: rules.whole_or_none(timeout, given[timeout], 1_000, DAY_MS),
        pause: rules.whole_or_none(pause, given[pause], 0, DAY_MS),
        "incremental": rules.truth_or_none("incremental", given["incremental"]),
        "state_backend": rules.choice_or_none("state_backend", given["state_backend"], BACKENDS),
    }


def _restarting(given: Mapping[str, Any]) -> dict[str, Any]:
    kind = rules.choice_or_none("restart_strategy", given["restart_strategy"], RESTARTS)
    attempts = rules.whole_or_none("restart_attempts", given["restart_attempts"], 1, 10**9)
    delay_ms = rules.whole_or_none("restart_delay_ms", given["restart_delay_ms"], 0, DAY_MS)
    for name, value, kinds in (
        ("restart_attempts", attempts, _COUNTS),
        ("restart_delay_ms", delay_ms, _DELAYS),
    ):
        if value is not None and kind not in kinds:
            msg = (
                f"{name} has no meaning with restart strategy {kind or 'of the job file'}: "
                f"choose {' or '.join(kinds)}, or leave it out"
            )
            raise invalid(msg, name)
    return {"restart_strategy": kind, "restart_attempts": attempts, "restart_delay_ms": delay_ms}


def _seconds(name: str, given: Mapping[str, Any]) -> int:
    return rules.whole(name, given[name], 0, YEAR_S)


def _ms(value: int | None) -> str | None:
    return None if value is None else f"{value}ms"
