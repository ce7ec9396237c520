"""Brings one operation on, as far as it will go.

1. Take the lease, or leave the operation to whoever has it.
2. Act: ask the engine, outside any transaction. An engine that is away is asked again later.
3. Record: in one transaction, write the step's rows, keep what it found and enter the next step.
4. Go on with 2 until the step waits, the operation ends, or the worker's turn is over.

Guarantee   Killed anywhere, the operation goes on with the step it was at once the lease is over.
            `act` may then run twice, `record` runs once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction

from controlplane.backends.errors import EngineAway, EngineError
from controlplane.backends.registry import client_for
from controlplane.operations import lifecycle
from controlplane.operations.contract import (
    LEASE_S,
    Cancelled,
    Context,
    Done,
    Kind,
    Outcome,
    StepFailed,
    TimedOut,
    Wait,
)
from controlplane.operations.kinds import kind_of
from controlplane.operations.models import Operation

TURN = timedelta(seconds=10)
"""After so long no further step is begun in the same task: tasks are to be short."""
QUICK_LOOKS, SLOWER = 20, 4
"""What is not there after so many looks is looked at so many times less often."""
FAULT_DELAY = timedelta(seconds=5)
AWAY_DELAYS_S = (0.5, 1.0, 2.0, 3.0, 5.0)

Probe = Callable[[str], None]
"""Called with a point's name: `act`, `acted`, `recording` (not committed yet), `recorded`; tests
end the worker there."""


def no_probe(_point: str) -> None:
    """Watch nothing."""


def advance(
    operation_id: uuid.UUID, clock: Callable[[], datetime], probe: Probe = no_probe
) -> float | None:
    """Bring the operation on; seconds until it wants that again, None when it needs no more."""
    operation = lifecycle.take(operation_id, clock(), LEASE_S)
    if operation is None:
        return None
    # No `finally`: a worker that is killed does not come to release its lease either.
    try:
        again_s = _turn(operation, clock, probe)
    except lifecycle.LeaseLost:
        again_s = None
    lifecycle.release(operation)
    return again_s


def stumble(operation_id: uuid.UUID, fault: Exception, now: datetime) -> None:
    """Note that bringing the operation on raised what no step may raise: a fault of ours.

    The sweep tries again until the step's deadline; then the operation fails and says so.
    """
    lifecycle.break_lease(operation_id)
    operation = lifecycle.take(operation_id, now, LEASE_S)
    if operation is None:
        return
    sentence = f"fault in step {operation.step}: {type(fault).__name__}: {fault}"
    if now >= operation.deadline:
        lifecycle.fail(operation, sentence, now)
    else:
        lifecycle.postpone(operation, Wait(sentence, retry=True), now + FAULT_DELAY, now)
    lifecycle.release(operation)


def _turn(operation: Operation, clock: Callable[[], datetime], probe: Probe) -> float | None:
    kind = kind_of(operation.kind)
    over = clock() + TURN
    while clock() < over:
        lifecycle.renew(operation, clock(), kind.step(operation.step).lease_s)
        context = Context(operation, client_for(operation.job.cluster), clock())
        probe("act")
        outcome = _given_up(kind, context) or _act(kind, context)
        probe("acted")
        context = replace(context, now=clock())
        if isinstance(outcome, Wait):
            pause_s = outcome.seconds * (1 if operation.attempt < QUICK_LOOKS else SLOWER)
            until = context.now + timedelta(seconds=pause_s)
            with transaction.atomic():
                lifecycle.postpone(operation, outcome, until, context.now)
            return pause_s
        with transaction.atomic():
            ended = _record(kind, context, outcome)
            probe("recording")
        probe("recorded")
        if ended:
            return None
    return 0.0


def _given_up(kind: Kind, context: Context) -> StepFailed | None:
    """Why it is not to go on: somebody cancelled it, or all of it took too long."""
    operation = context.operation
    if kind.is_recovering(operation):
        return None
    if operation.cancel_asked_at and kind.may_cancel(operation):
        return Cancelled(operation.cancel_sentence)
    if operation.give_up_at and context.now >= operation.give_up_at:
        return TimedOut(f"gave up after {kind.timeout_s / 60:g} min: {operation.text}")
    return None


def _act(kind: Kind, context: Context) -> Outcome | StepFailed:
    """Do the step's asking; what goes wrong becomes a value."""
    operation = context.operation
    step = kind.step(operation.step)
    try:
        outcome = step.act(context)
    except EngineAway as error:
        delay = AWAY_DELAYS_S[min(operation.attempt, len(AWAY_DELAYS_S) - 1)]
        outcome = Wait(f"{error.message}; asking again", delay, retry=True)
    except EngineError as error:
        return StepFailed(error.message)
    except StepFailed as failed:
        return failed
    if isinstance(outcome, Wait) and context.now >= operation.deadline:
        return TimedOut(f"gave up after {step.timeout_s:g} s: {outcome.text}")
    return outcome


def _record(kind: Kind, context: Context, outcome: Done | StepFailed) -> bool:
    """Write down how the step went; whether the operation has ended."""
    if isinstance(outcome, StepFailed):
        return _record_failure(kind, context, outcome)
    operation = context.operation
    lifecycle.keep(operation, outcome.found)
    kind.step(operation.step).record(context)
    following = kind.after(operation)
    if following:
        lifecycle.enter(operation, kind.step(following), context.now)
        return False
    if operation.error:  # these were the steps of recovery
        _end(kind, context, StepFailed(operation.error))
    else:
        lifecycle.succeed(operation, operation.result.get("text", "done"), context.now)
    return True


def _record_failure(kind: Kind, context: Context, failure: StepFailed) -> bool:
    operation = context.operation
    if kind.is_recovering(operation):
        failure = StepFailed(kind.not_recovered(operation, failure))
    elif kind.must_recover(operation, failure):
        lifecycle.keep(operation, {"cancelled": isinstance(failure, Cancelled)})
        lifecycle.recover(operation, kind, str(failure), context.now)
        return False
    _end(kind, context, failure)
    return True


def _end(kind: Kind, context: Context, failure: StepFailed) -> None:
    """Write what the failure means; what was cancelled has not failed."""
    operation = context.operation
    cancelled = isinstance(failure, Cancelled) or bool(operation.result.get("cancelled"))
    kind.fail(context, failure)
    lifecycle.fail(operation, str(failure), context.now, cancelled=cancelled)
