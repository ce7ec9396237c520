"""What an operation kind is made of.

    Kind ──< Step       act(context)     asks engines, outside any transaction; may run again
                        record(context)  writes rows, in the transaction that notes the step as done

    a step that is not ready answers Wait; one that cannot succeed raises StepFailed, and then the
    kind's recovery steps run, if it has any that apply, before the operation fails

Guarantee   After a crash at any point the step is done again, and what it found the first time is
            found again: ids are chosen here, derived from the operation's own.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from controlplane.backends.contract import EngineBackend
from controlplane.jobs.models import Job
from controlplane.operations.models import Operation

LEASE_S = 30.0
"""Of a turn, until its first step asks for what it needs; longer than quick calls may take."""
BUILD_LEASE_S = 60.0
"""Longer than a client waits for an engine that builds a graph: `BUILD_S` of its requests."""


class StepFailed(Exception):
    """The step cannot succeed; the text is the one sentence that people see."""


class TimedOut(StepFailed):
    """The step waited too long; what it waited for may still come."""


class Superseded(StepFailed):
    """Another operation ended this one."""


class Cancelled(StepFailed):
    """Somebody wished it to end without its result."""


@dataclass(frozen=True, slots=True)
class Done:
    """The step is done; `found` is kept in the operation's result."""

    found: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet: look again in `seconds`; `found` is kept at once."""

    text: str
    seconds: float = 0.5
    found: Mapping[str, Any] = field(default_factory=dict)
    retry: bool = False
    """Whether a try failed, and the next look is another one: history lists each."""


Outcome = Done | Wait


@dataclass(frozen=True, slots=True)
class Context:
    """What a step sees."""

    operation: Operation
    engine: EngineBackend
    now: datetime

    @property
    def job(self) -> Job:
        """The job that it is about."""
        return self.operation.job

    @property
    def params(self) -> dict[str, Any]:
        """What was asked."""
        found: dict[str, Any] = self.operation.params
        return found

    @property
    def result(self) -> dict[str, Any]:
        """What the steps before found."""
        found: dict[str, Any] = self.operation.result
        return found

    def derived_id(self, purpose: str) -> str:
        """32 hex digits, the same each time: what the engine shall call something of ours."""
        return uuid.uuid5(self.operation.pk, purpose).hex


def nothing(_context: Context) -> None:
    """Record nothing."""


def always(_operation: Operation) -> bool:
    """Whatever was asked and found."""
    return True


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a kind; its name is kept in the database, so it must not change."""

    name: str
    text: str
    act: Callable[[Context], Outcome]
    record: Callable[[Context], None] = nothing
    timeout_s: float = 60.0
    builds: bool = False
    """Whether `act` lets the engine build a graph or sends it a file, which may take a while."""
    when: Callable[[Operation], bool] = always
    """Whether it is done at all, decided when the step before it is done."""

    @property
    def lease_s(self) -> float:
        """Longer than its calls may take; a worker that was killed in it is missed so long."""
        return BUILD_LEASE_S if self.builds else LEASE_S


class Kind:
    """One kind of operation."""

    name: str
    steps: Sequence[Step]
    recovery: Sequence[Step] = ()
    """Done when a step failed and `must_recover`; then the operation fails all the same."""
    supersedes = False
    """Whether it ends an unfinished operation of its scope instead of being refused by it."""
    timeout_s: float = 3_600.0
    """When all of it is given up; each step has a limit of its own besides."""
    discarded_by = ""
    """The kind that clears away, later, what a cancelled operation of this one leaves."""
    settled: frozenset[str] = frozenset()
    """Steps in which it cannot be cancelled: the engine was asked for what it cannot take back."""

    def scope(self, job: Job, params: Mapping[str, Any]) -> str:
        """What it has for itself while it runs."""
        return f"job:{job.pk}"

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Refuse what cannot be begun. Raises Refused."""

    def begin(self, operation: Operation, now: datetime) -> None:
        """Write the rows that exist from the start, in its transaction."""

    def must_recover(self, operation: Operation, failure: StepFailed) -> bool:
        """Whether that failure leaves something behind which the recovery steps put right."""
        return bool(self.recovery)

    def not_recovered(self, operation: Operation, failure: StepFailed) -> str:
        """What people are told when a step of recovery failed as well."""
        return f"{operation.error}; and then {failure}"

    def may_cancel(self, operation: Operation) -> bool:
        """Whether it can end now without its result, leaving nothing behind."""
        return operation.step not in self.settled and not self.is_recovering(operation)

    def fail(self, context: Context, failure: StepFailed) -> None:
        """Write what the failure means, in its transaction."""

    def step(self, name: str) -> Step:
        """The step of that name."""
        return next(step for step in (*self.steps, *self.recovery) if step.name == name)

    def after(self, operation: Operation) -> str:
        """Name of the step that follows its present one; empty after the last."""
        steps = self.recovery if self.is_recovering(operation) else self.steps
        names = [step.name for step in steps]
        following = steps[names.index(operation.step) + 1 :]
        return next((step.name for step in following if step.when(operation)), "")

    def is_recovering(self, operation: Operation) -> bool:
        """Whether its present step is one of recovery."""
        return operation.step in {step.name for step in self.recovery}
