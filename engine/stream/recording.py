"""What a job file leaves behind while it is captured: its settings come in, its graph goes out.

Shapes   settings are text by key, as they are submitted. Known keys: `parallelism.default`,
         `execution.checkpointing.interval`, `pipeline.max-parallelism`, `headwater.sinks.shadow`,
         `headwater.sinks.discard` (true: nothing is written), `headwater.event-time.from` and
         `.until` (moments: what is written, and where sources end),
         `state.backend` (memory | rocksdb), `state.backend.rocksdb.localdir`, and
         `state.backend.rocksdb.memory.` (per-operator | write-buffer-ratio | block-cache-ratio).
         A job file that nobody submits, `python job.py`, takes them from the environment:
         HEADWATER_PARALLELISM=2 HEADWATER_SETTINGS="state.backend=rocksdb; …"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from os import environ

from engine.durations import parse_duration
from engine.elements import Micros
from engine.errors import ConfigError
from engine.graph.jobgraph import JobGraph
from engine.operators.span import Span, span_of
from engine.state.budget import Budget, budget_of
from engine.stream.setting_names import check_setting_names

PARALLELISM = "parallelism.default"
CHECKPOINT_INTERVAL = "execution.checkpointing.interval"
MAX_PARALLELISM = "pipeline.max-parallelism"
SHADOW = "headwater.sinks.shadow"
DISCARD = "headwater.sinks.discard"
WRITTEN_FROM = "headwater.event-time.from"
WRITTEN_UNTIL = "headwater.event-time.until"
STATE_BACKEND = "state.backend"
ROCKSDB_FOLDER = "state.backend.rocksdb.localdir"


PARALLELISM_VARIABLE, SETTINGS_VARIABLE = "HEADWATER_PARALLELISM", "HEADWATER_SETTINGS"


@dataclass(slots=True)
class Recording:
    """One run of a job file."""

    settings: Mapping[str, str]
    graphs: list[JobGraph] = field(default_factory=list)
    """What `execute()` gave, in order."""

    def parallelism(self) -> int | None:
        """Wanted instead of the environment's."""
        return self._number(PARALLELISM)

    def max_parallelism(self) -> int | None:
        """Wanted instead of the environment's."""
        return self._number(MAX_PARALLELISM)

    def checkpoint_interval(self) -> str | int | None:
        """Wanted instead of the environment's: a length of time."""
        value = self.settings.get(CHECKPOINT_INTERVAL)
        # A plain number is milliseconds, as in Flink.
        return f"{value}ms" if value is not None and value.isdecimal() else value

    def state_backend(self) -> str | None:
        """Wanted instead of the environment's."""
        return self.settings.get(STATE_BACKEND) or None

    def rocksdb_folder(self) -> str | None:
        """Where RocksDB shall have its files."""
        return self.settings.get(ROCKSDB_FOLDER) or None

    def state_budget(self, memory: str | int | None) -> Budget:
        """What RocksDB may take of memory; `memory`: the environment's wish for each operator."""
        return budget_of(self.settings, memory)

    def shadow(self) -> str | None:
        """The name beside whose targets all sinks shall write."""
        return self.settings.get(SHADOW) or None

    def discards(self) -> bool:
        """Whether sinks shall write nothing. Raises ConfigError."""
        given = self.settings.get(DISCARD, "false").strip().lower()
        if given not in ("true", "false"):
            msg = f"setting {DISCARD} must be true or false: got {self.settings[DISCARD]!r}"
            raise ConfigError(msg)
        return given == "true"

    def span(self) -> Span:
        """The event times that sinks shall write; sources end with it. Raises ConfigError."""
        since, until = (self.settings.get(key) or None for key in (WRITTEN_FROM, WRITTEN_UNTIL))
        return span_of(since, until, (WRITTEN_FROM, WRITTEN_UNTIL))

    def _number(self, key: str) -> int | None:
        value = self.settings.get(key)
        if value is None:
            return None
        if not value.isdecimal() or int(value) < 1:
            msg = f"setting {key} is not a positive number: got {value!r}; pass e.g. 2"
            raise ConfigError(msg)
        return int(value)


_current: ContextVar[Recording | None] = ContextVar("recording", default=None)


def current_recording() -> Recording | None:
    """The recording that the running job file belongs to."""
    return _current.get()


def environment_settings(variables: Mapping[str, str] = environ) -> Mapping[str, str]:
    """Settings of a job file that runs by itself. Raises ConfigError.

    >>> environment_settings({"HEADWATER_PARALLELISM": "2", "HEADWATER_SETTINGS": "a=1; b=2"})
    {'a': '1', 'b': '2', 'parallelism.default': '2'}
    """
    settings = {}
    for part in variables.get(SETTINGS_VARIABLE, "").split(";"):
        key, equals, value = (text.strip() for text in part.partition("="))
        if part.strip() and not (key and equals):
            msg = (
                f"{SETTINGS_VARIABLE} has a part that is not KEY=VALUE: got {part.strip()!r}; "
                "separate parts with ';'"
            )
            raise ConfigError(msg)
        if key:
            settings[key] = value
    if parallelism := variables.get(PARALLELISM_VARIABLE, "").strip():
        settings[PARALLELISM] = parallelism
    check_setting_names(settings)
    return settings


@contextmanager
def recording(settings: Mapping[str, str]) -> Iterator[Recording]:
    """Record what `execute()` is called with inside the block. Raises ConfigError."""
    check_setting_names(settings)
    recorded = Recording(settings)
    token = _current.set(recorded)
    try:
        yield recorded
    finally:
        _current.reset(token)


def interval_of(value: str | int | None) -> Micros | None:
    """A checkpoint interval in µs; None or 0 means no periodic checkpoints. Raises ConfigError."""
    if value is None:
        return None
    interval = parse_duration(value, "checkpoint interval")
    if interval < 0:
        msg = f"checkpoint interval is negative: got {value!r}; pass e.g. '1s', or None for none"
        raise ConfigError(msg)
    return interval or None
