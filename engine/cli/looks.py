"""Looks into snapshots: at folders here, or at those of an engine, with the same answers.

Here()         reads the files itself; no engine is needed
There(engine)  asks the engine at --url, which may see folders that this machine does not
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

import polars as pl

from engine.checkpoint.format.manifest import Manifest, parse_manifest
from engine.checkpoint.inspection.difference import difference
from engine.checkpoint.inspection.difference_report import Difference
from engine.checkpoint.inspection.questions import StateQuestion, rows_of
from engine.checkpoint.inspection.reading import open_snapshot
from engine.checkpoint.inspection.verification import Verification, verify
from engine.checkpoint.restoring.restore import load_manifest
from engine.cli.rows import frame_of
from engine.errors import ExternalError
from engine.rest.answers.inspections import Inspection
from engine.rest.client import EngineClient
from engine.rest.model.snapshots import MAX_ROWS

T = TypeVar("T")

POLL_S = 0.2


class Look(Protocol):
    """What can be asked of snapshots. Every method raises HeadwaterError."""

    def manifest(self, path: str) -> Manifest:
        """What a snapshot holds."""

    def verified(self, path: str) -> Verification:
        """Whether its files are as they were written."""

    def difference(self, left: str, right: str, examples: int) -> Difference:
        """In which rows two differ."""

    def rows(self, path: str, question: StateQuestion) -> tuple[pl.DataFrame, bool]:
        """Rows of one state, and whether there are more."""


class Here:
    """Reads folders that this machine can reach."""

    def manifest(self, path: str) -> Manifest:
        """What a snapshot holds."""
        return load_manifest(path)

    def verified(self, path: str) -> Verification:
        """Whether its files are as they were written."""
        return verify(open_snapshot(path))

    def difference(self, left: str, right: str, examples: int) -> Difference:
        """In which rows two differ."""
        return difference(open_snapshot(left), open_snapshot(right), examples)

    def rows(self, path: str, question: StateQuestion) -> tuple[pl.DataFrame, bool]:
        """Rows of one state."""
        found = rows_of(open_snapshot(path), question)
        shown = found if question.limit is None else found.head(question.limit)
        return shown, shown.height < found.height


class There:
    """Asks an engine."""

    def __init__(self, engine: EngineClient) -> None:
        self._engine = engine

    def manifest(self, path: str) -> Manifest:
        """What a snapshot holds."""
        found = self._engine.savepoint(path)
        return parse_manifest(json.dumps(found.manifest).encode(), path)

    def verified(self, path: str) -> Verification:
        """Whether its files are as they were written."""
        trigger_id = self._engine.verify_savepoint(path)
        return _waited(lambda: self._engine.verification(trigger_id))

    def difference(self, left: str, right: str, examples: int) -> Difference:
        """In which rows two differ."""
        trigger_id = self._engine.compare_savepoints(left, right, examples)
        return _waited(lambda: self._engine.comparison(trigger_id))

    def rows(self, path: str, question: StateQuestion) -> tuple[pl.DataFrame, bool]:
        """Rows of one state, their values as plain JSON; never more than one answer holds."""
        most = MAX_ROWS if question.limit is None else min(question.limit, MAX_ROWS)
        found = self._engine.read_state(path, replace(question, limit=most))
        return frame_of(found), found.truncated


def _waited(poll: Callable[[], Inspection[T]]) -> T:
    while not (status := poll()).finished:
        time.sleep(POLL_S)
    if status.result is None:
        raise ExternalError(status.failure or "the engine gave no reason; see its log")
    return status.result
