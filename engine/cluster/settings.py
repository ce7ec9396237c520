"""Settings of a job that concern the cluster, under Flink's keys where Flink has one.

execution.checkpointing.timeout                          60s
execution.checkpointing.min-pause                        0
execution.checkpointing.tolerable-failed-checkpoints     3, and as many as fail within a minute
state.checkpoints.num-retained                           3
restart-strategy.*                                       see restart.py
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.checkpoint.coordinator import CheckpointConfig
from engine.cluster.snapshots import SnapshotSettings
from engine.durations import parse_duration
from engine.errors import ConfigError
from engine.graph.plan import Plan

TIMEOUT = "execution.checkpointing.timeout"
MIN_PAUSE = "execution.checkpointing.min-pause"
TOLERABLE = "execution.checkpointing.tolerable-failed-checkpoints"
PATIENCE_MS = 60_000
RETAINED = "state.checkpoints.num-retained"


def snapshot_settings(directory: str, plan: Plan, settings: Mapping[str, str]) -> SnapshotSettings:
    """How a job takes and keeps snapshots. Raises ConfigError."""
    config = CheckpointConfig(
        directory=directory,
        interval_ms=plan.checkpoint_interval_ms,
        timeout_ms=_milliseconds(settings, TIMEOUT, "60s"),
        min_pause_ms=_milliseconds(settings, MIN_PAUSE, "0s"),
        tolerable_failures=whole_number(settings, TOLERABLE, 3, least=0),
        # Who asks for a number means that number; nobody else wants restarts for a full disk.
        patience_ms=0 if TOLERABLE in settings else PATIENCE_MS,
    )
    return SnapshotSettings(config, whole_number(settings, RETAINED, 3, least=1))


def whole_number(settings: Mapping[str, str], key: str, default: int, *, least: int) -> int:
    """A setting that counts something. Raises ConfigError."""
    text = settings.get(key, str(default))
    if not text.isdecimal() or int(text) < least:
        msg = f"setting {key} must be a whole number, at least {least}: got {text!r}; pass e.g. 3"
        raise ConfigError(msg)
    return int(text)


def _milliseconds(settings: Mapping[str, str], key: str, default: str) -> int:
    text = settings.get(key, default)
    # A plain number is milliseconds, as in Flink.
    return parse_duration(f"{text}ms" if text.isdecimal() else text, f"setting {key}") // 1000
