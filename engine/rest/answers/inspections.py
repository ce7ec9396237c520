"""Where a long look into snapshots stands, with what it has found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from engine.checkpoint.inspection.difference_report import Difference
from engine.checkpoint.inspection.verification import Verification
from engine.rest.answers.checkpoints import OperationStatus

T = TypeVar("T")

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Inspection(Generic[T]):
    """A verification or a comparison."""

    finished: bool
    done: int
    total: int
    """Bytes of a verification, rows of a comparison; 0 until it has begun."""
    result: T | None = None
    failure: str | None = None
    """One sentence, when it is finished and there is no result."""


def verification(body: JsonObject) -> Inspection[Verification]:
    """Read a poll of a verification."""
    return _inspection(body, Verification.from_json)


def comparison(body: JsonObject) -> Inspection[Difference]:
    """Read a poll of a comparison."""
    return _inspection(body, Difference.from_json)


def _inspection(body: JsonObject, read: Callable[[JsonObject], T]) -> Inspection[T]:
    status, progress = OperationStatus.of(body), body["progress"]
    found = read(body["operation"]) if status.done and status.failure is None else None
    return Inspection(status.done, progress["done"], progress["total"], found, status.failure)
