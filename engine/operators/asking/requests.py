"""Requests: what an operator asks of the world beside its subtask, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from engine.elements import EndOfInput, Idle, Micros, Watermark

Control = Watermark | Idle | EndOfInput
"""What must not overtake rows."""


@dataclass(frozen=True, slots=True)
class Request:
    """A coroutine that is to run beside the subtask."""

    number: int
    call: Callable[[], Coroutine[Any, Any, object]]
    timeout: Micros | None = None
    """How long it may take, µs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request: a value, or an error, or nothing in time."""

    number: int
    value: object = None
    error: BaseException | None = None
    timed_out: bool = False
