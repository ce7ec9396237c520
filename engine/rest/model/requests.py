"""What a client may ask the service to do, parsed and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ClaimMode(StrEnum):
    """Who owns the snapshot that a job starts from."""

    NO_CLAIM = "NO_CLAIM"
    """Its giver: the engine never deletes it."""
    CLAIM = "CLAIM"
    """The engine that runs the job: it deletes it as it does its own checkpoints, once newer ones
    have replaced it."""


@dataclass(frozen=True, slots=True)
class Program:
    """An uploaded artifact and how to turn it into a graph."""

    artifact_id: str
    arguments: tuple[str, ...] = ()
    parallelism: int | None = None
    """Wins over the setting parallelism.default; None leaves it to the job."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Handed to `stream.capture`: e.g. parallelism.default, execution.checkpointing.interval,
    headwater.sinks.shadow; `pipeline.name` replaces the job's own name."""
    entry: str | None = None
    """`package.module` to run or `package.module:function` to call; None: as the artifact says."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Start a program, from nothing or from a snapshot."""

    program: Program
    job_id: str | None = None
    """32 hex digits chosen by the client, so that a repeated request cannot start it twice."""
    savepoint_path: str | None = None
    allow_non_restored: bool | frozenset[str] = frozenset()
    """State that may be lost: of operators (by uid) or single states (uid/state); True for any."""
    accept_missing_input: frozenset[str] = frozenset()
    """Sources (by uid) that may go on without input which is not there any more."""
    claim: ClaimMode = ClaimMode.NO_CLAIM


@dataclass(frozen=True, slots=True)
class SavepointRequest:
    """Take a savepoint; with `cancel` the job is cancelled once it is complete."""

    target: str | None = None
    """A folder that will hold the savepoint's own folder; None is the engine's default."""
    trigger_id: str | None = None
    """32 hex digits chosen by the client: the same id again is the same operation."""
    cancel: bool = False


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Take a savepoint after which no source reads on, then end the job as FINISHED."""

    target: str | None = None
    trigger_id: str | None = None
    drain: bool = False


@dataclass(frozen=True, slots=True)
class RescaleRequest:
    """Run a job on at another parallelism: of all of it, or of some vertices."""

    parallelism: int | None = None
    """Of the vertices that have the one that most have; what the author chose apart stays."""
    vertices: Mapping[str, int] = field(default_factory=dict)
    """By vertex id; those that are not named stay as they are."""
    trigger_id: str | None = None


@dataclass(frozen=True, slots=True)
class PreflightRequest:
    """Would this program start from this snapshot?"""

    program: Program
    savepoint_path: str
    allow_non_restored: bool | frozenset[str] = frozenset()
    accept_missing_input: frozenset[str] = frozenset()
