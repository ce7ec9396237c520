"""The configuration of a job as its page shows it: each setting with its source, and its runs.

    default      nobody chose: the platform's own value
    job file     nobody chose: what the job file says, or else the engine
    this job     chosen here

Units    values are printed with the unit of their name: `_ms` milliseconds, `_s` seconds.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.backends.models import Cluster
from controlplane.jobs.health import healthy_runs, last_healthy_version
from controlplane.jobs.models import Job, JobVersion, Run, Upkeep
from controlplane.jobs.settings import BACKENDS, DEFAULTS, RESTARTS, settings_from
from controlplane.operations.steps.rows import Source

RUNS_SHOWN = 20
NOT_SAID = "as the job file says"

TITLES = {
    "parallelism": "Parallelism",
    "arguments": "Arguments",
    "control_port": "Control port",
    "checkpoint_interval_ms": "Checkpoint every",
    "checkpoint_timeout_ms": "Checkpoint given up after",
    "checkpoint_min_pause_ms": "Pause between checkpoints",
    "incremental": "Incremental checkpoints",
    "state_backend": "State backend",
    "restart_strategy": "Restart strategy",
    "restart_attempts": "Restarts allowed",
    "restart_delay_ms": "Delay before a restart",
    "require_state": "Require state",
    "tags": "Tags",
    "delay_objective_s": "Objective: delay",
    "recovery_point_objective_s": "Objective: recovery point",
}
PRIVATE = frozenset({"tags", "delay_objective_s", "recovery_point_objective_s", "require_state"})
"""Matters of the platform: they hold at once."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting."""

    name: str
    title: str
    value: str
    source: str
    running: str
    """What the present run has; empty: no run, or it does not concern it."""
    waits: bool
    """Whether the next start changes it."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run and where it comes from."""

    run: Run
    source: str
    is_healthy: bool


@dataclass(frozen=True, slots=True)
class Configuration:
    """The page."""

    rows: tuple[SettingRow, ...]
    values: dict[str, Any]
    """As the form shows them."""
    runs: tuple[RunLine, ...]
    upkeep: Upkeep | None
    clusters: tuple[Cluster, ...]
    healthy: JobVersion | None
    """Where a rollback would go."""

    @property
    def waits(self) -> bool:
        """Whether settings wait for the next start."""
        return any(row.waits for row in self.rows)

    @property
    def strategies(self) -> tuple[str, ...]:
        """What a restart strategy can be."""
        return RESTARTS

    @property
    def backends(self) -> tuple[str, ...]:
        """What a state backend can be."""
        return BACKENDS

    @property
    def tries_again_at(self) -> datetime | None:
        """When the reconciler may start the job again."""
        return self.upkeep.not_before if self.upkeep and self.upkeep.tries else None


def configuration(job: Job, run: Run | None) -> Configuration:
    """The settings of a job, its runs, and what keeps it running."""
    chosen = settings_from(job.settings).as_json()
    live = run if run and not run.is_terminal else None
    started = settings_from(live.settings).as_json() if live and live.settings else None
    return Configuration(
        rows=tuple(_row(name, chosen[name], started) for name in TITLES),
        values=chosen | {"arguments": shown(chosen["arguments"]), "tags": shown(chosen["tags"])},
        runs=_runs(job),
        upkeep=Upkeep.objects.filter(job=job).select_related("paused_by").first(),
        clusters=tuple(Cluster.present.all()),
        healthy=last_healthy_version(job, besides=live),
    )


def _row(name: str, value: Any, started: dict[str, Any] | None) -> SettingRow:
    default = DEFAULTS.as_json()[name]
    source = "this job" if value != default else "job file" if value is None else "default"
    concerns = started is not None and name not in PRIVATE
    before = started[name] if started is not None else None
    return SettingRow(
        name=name,
        title=TITLES[name],
        value=worded(name, value),
        source=source,
        running=worded(name, before) if concerns else "",
        waits=concerns and before != value,
    )


def worded(name: str, value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return NOT_SAID
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return shown(value) or "none"
    if name.endswith("_s") or name == "control_port":
        return f"{value:,} s" if value and name.endswith("_s") else str(value or "none")
    return f"{value:,} ms" if name.endswith("_ms") else str(value)


def shown(values: list[str]) -> str:
    """A list in one line, as a shell would read it."""
    return shlex.join(values)


def _runs(job: Job) -> tuple[RunLine, ...]:
    healthy = set(healthy_runs(job).values_list("pk", flat=True)[:RUNS_SHOWN])
    found = job.runs.filter(purpose=Run.Purpose.LIVE).select_related(
        "version", "restored_from", "started_by", "cluster"
    )
    return tuple(
        RunLine(run, str(Source(run.restored_from, run.restored_path)), run.pk in healthy)
        for run in found[:RUNS_SHOWN]
    )
