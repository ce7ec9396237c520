"""A Celery worker that is killed where it is told: `celery -A mortal_worker worker`.

    MORTAL_WORKER=<file> of lines  trigger acted     step and point: when it gets there, the first
                                   end recording     line is struck out and SIGKILL ends the process

Leases are short here, so that a test need not wait for those of the killed worker.
"""

from __future__ import annotations

import os
import signal
import uuid
from pathlib import Path
from typing import Any

import django

django.setup()

from celery.signals import worker_init, worker_ready  # noqa: E402

from controlplane.celery import app  # noqa: E402
from controlplane.operations import contract, runner, tasks  # noqa: E402
from controlplane.operations.models import Operation  # noqa: E402

__all__ = ["app"]

LEASE_S = 1.0
AFTER_THE_LEASE_S = 4.0
"""The sweep takes for forgotten what is three seconds late."""

_advance = runner.advance


def advance(operation_id: uuid.UUID, clock: Any) -> float | None:
    """Bring the operation on until this process is to die."""

    def probe(point: str) -> None:
        if point == "act":
            steps.append(Operation.objects.values_list("step", flat=True).get(pk=operation_id))
        _die_at(f"{steps[-1]} {point}")

    steps: list[str] = []
    return _advance(operation_id, clock, probe)


def _die_at(place: str) -> None:
    file = Path(os.environ["MORTAL_WORKER"])
    places = file.read_text().splitlines()
    if places and places[0] == place:
        file.write_text("".join(f"{line}\n" for line in places[1:]))
        os.kill(os.getpid(), signal.SIGKILL)


@worker_init.connect
def become_mortal(**_event: Any) -> None:
    """Only in a worker: whoever just imports this module stays as it was."""
    runner.advance = advance  # type: ignore[assignment]
    runner.LEASE_S = LEASE_S
    contract.Step.lease_s = property(lambda step: LEASE_S)  # type: ignore[assignment,method-assign]


@worker_ready.connect
def look_for_orphans(**_event: Any) -> None:
    """What the killed worker had is taken up when its lease is over."""
    tasks.sweep.apply_async(countdown=AFTER_THE_LEASE_S)
