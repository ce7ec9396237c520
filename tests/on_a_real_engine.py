"""Operations brought to their end by the real clock, beside an engine of processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from django.utils import timezone

from controlplane.operations import runner
from controlplane.operations.models import Operation
from engine.testing.cluster import PATIENCE_S
from examples.truth import read_output


def finish(operation: Operation, look: Callable[[Operation], None] = lambda _: None) -> Operation:
    """Bring it to its end, whichever; `look`: called between its steps."""
    until = time.monotonic() + PATIENCE_S
    while (again_s := runner.advance(operation.pk, timezone.now)) is not None:
        operation.refresh_from_db()
        look(operation)
        assert time.monotonic() < until, operation
        time.sleep(again_s)
    operation.refresh_from_db()
    return operation


def succeed(operation: Operation, look: Callable[[Operation], None] = lambda _: None) -> Operation:
    """Bring it to a good end."""
    ended = finish(operation, look)
    assert (ended.state, ended.error) == (Operation.State.SUCCEEDED, "")
    return ended


def wait(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.25)


def last_window(folder: Path) -> datetime:
    if not any(folder.rglob("[!.]*.parquet")):
        return datetime(2013, 1, 1, tzinfo=UTC)
    return read_output(folder)["window_end"].max()
