"""Settings of a job that concern the cluster, under Flink's keys where Flink has one.

execution.checkpointing.timeout                          60s
execution.checkpointing.min-pause                        0; more means one checkpoint at a time
execution.checkpointing.max-concurrent-checkpoints       1; a savepoint may be beside them
execution.checkpointing.dir                              HOME/checkpoints; a path, s3://…
execution.checkpointing.savepoint-dir                    HOME/savepoints; a path, s3://…
execution.checkpointing.incremental                      true
execution.checkpointing.externalized-checkpoint-retention
                                                         DELETE_ON_CANCELLATION; see Externalized
execution.checkpointing.tolerable-failed-checkpoints     3, and as many as fail within a minute
state.checkpoints.num-retained                           3
headwater.parallelism                                    as built; uid=2; uid=4, see rescale.py
headwater.read-limit                                     none; rows/s, see read_limits.py
headwater.restore.positions                              none; uid=earliest; uid=TIME, see starts.py
headwater.restore.renames                                none; old=new; old=new, see renames.py
restart-strategy.*                                       see restart_settings.py
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from engine.checkpoint.coordination.config import CheckpointConfig
from engine.checkpoint.storage.addresses import open_folder
from engine.cluster.snapshots.job_snapshots import SnapshotSettings
from engine.durations import parse_duration
from engine.errors import ConfigError
from engine.graph.plan import Plan
from engine.rest.model.jobs import JobStatus

CHECKPOINT_DIR = "execution.checkpointing.dir"
SAVEPOINT_DIR = "execution.checkpointing.savepoint-dir"
INCREMENTAL = "execution.checkpointing.incremental"
TIMEOUT = "execution.checkpointing.timeout"
MIN_PAUSE = "execution.checkpointing.min-pause"
MAX_CONCURRENT = "execution.checkpointing.max-concurrent-checkpoints"
TOLERABLE = "execution.checkpointing.tolerable-failed-checkpoints"
PATIENCE_MS = 60_000
RETAINED = "state.checkpoints.num-retained"
EXTERNALIZED = "execution.checkpointing.externalized-checkpoint-retention"


class Externalized(StrEnum):
    """Whose checkpoints stay when the engine forgets a job; the names are Flink's.

    Those of a FINISHED job never do: its input has ended, and all is committed.
    """

    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"
    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    """Those of a FAILED job stay."""
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    """Those of a CANCELED one too."""


def snapshot_settings(directory: str, plan: Plan, settings: Mapping[str, str]) -> SnapshotSettings:
    """How a job takes and keeps snapshots. Raises ConfigError."""
    externalized(settings)  # a wrong one is told now, not when the job has ended
    config = CheckpointConfig(
        directory=directory,
        interval_ms=plan.checkpoint_interval_ms,
        incremental=truth(settings, INCREMENTAL, default=True),
        timeout_ms=milliseconds(settings, TIMEOUT, "60s"),
        min_pause_ms=milliseconds(settings, MIN_PAUSE, "0s"),
        max_concurrent=whole_number(settings, MAX_CONCURRENT, 1, least=1),
        tolerable_failures=whole_number(settings, TOLERABLE, 3, least=0),
        # Who asks for a number means that number; nobody else wants restarts for a full disk.
        patience_ms=0 if TOLERABLE in settings else PATIENCE_MS,
    )
    return SnapshotSettings(config, whole_number(settings, RETAINED, 3, least=1))


def keeps_checkpoints(settings: Mapping[str, str], status: JobStatus) -> bool:
    """Whether the checkpoints of an ended job stay when it is forgotten. Raises ConfigError."""
    wish = externalized(settings)
    match status:
        case JobStatus.FAILED:
            return wish is not Externalized.NO_EXTERNALIZED_CHECKPOINTS
        case JobStatus.CANCELED:
            return wish is Externalized.RETAIN_ON_CANCELLATION
        case _:
            return False


def externalized(settings: Mapping[str, str]) -> Externalized:
    """What shall become of checkpoints. Raises ConfigError."""
    text = settings.get(EXTERNALIZED, Externalized.DELETE_ON_CANCELLATION)
    try:
        return Externalized(text.upper())
    except ValueError:
        msg = f"setting {EXTERNALIZED} must be one of {', '.join(Externalized)}: got {text!r}"
        raise ConfigError(msg) from None


def directory_of(settings: Mapping[str, str], key: str, default: Path) -> str:
    """Where a kind of snapshots goes: a path or another address. Raises ConfigError."""
    given = settings.get(key, "").strip()
    return open_folder(absolute(given)).url if given else str(default)


def absolute(path: str) -> str:
    """The same place, whatever folder a process works in; addresses stay as they are."""
    if "://" in path or path.startswith("file:"):
        return path
    folder = Path(path)
    with suppress(RuntimeError):  # "~name" of nobody is a folder like any other
        folder = folder.expanduser()
    return str(folder.absolute())


def whole_number(settings: Mapping[str, str], key: str, default: int, *, least: int) -> int:
    """A setting that counts something. Raises ConfigError."""
    text = settings.get(key, str(default))
    if not text.isdecimal() or int(text) < least:
        msg = f"setting {key} must be a whole number, at least {least}: got {text!r}; pass e.g. 3"
        raise ConfigError(msg)
    return int(text)


def truth(settings: Mapping[str, str], key: str, *, default: bool) -> bool:
    """A setting that is on or off. Raises ConfigError.

    >>> truth({"a": "False"}, "a", default=True)
    False
    """
    text = settings.get(key, str(default)).strip().lower()
    if text not in ("true", "false"):
        msg = f"setting {key} must be true or false: got {settings[key]!r}"
        raise ConfigError(msg)
    return text == "true"


def milliseconds(settings: Mapping[str, str], key: str, default: str) -> int:
    """A setting that is a length of time. Raises ConfigError."""
    text = settings.get(key, default)
    # A plain number is milliseconds, as in Flink.
    return parse_duration(f"{text}ms" if text.isdecimal() else text, f"setting {key}") // 1000
