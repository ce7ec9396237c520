"""Requests that look into snapshots; only our engine answers them."""

from __future__ import annotations

from engine.checkpoint.inspection.difference_report import Difference
from engine.checkpoint.inspection.questions import StateQuestion, StateRows
from engine.checkpoint.inspection.verification import Verification
from engine.rest.answers import inspections
from engine.rest.answers.checkpoints import trigger_id_of
from engine.rest.answers.inspections import Inspection
from engine.rest.calls.call import Call

READ_S = 40.0
"""The engine gives up after 30 s by itself, and says so."""

_SAVEPOINTS = "/headwater/savepoints"


def read_state(path: str, question: StateQuestion) -> Call[StateRows]:
    """Rows of one state of a snapshot."""
    body = {
        "path": path,
        "operator": question.operator,
        "state": question.state,
        "key": dict(question.key),
        "sql": question.sql,
        "limit": question.limit,
    }
    return Call("POST", f"{_SAVEPOINTS}/read", StateRows.from_json, body=body, needs_s=READ_S)


def verify_savepoint(path: str, trigger_id: str | None = None) -> Call[str]:
    """Begin to read every byte of a snapshot; the trigger id to poll."""
    body = {"path": path, "triggerId": trigger_id}
    return Call("POST", f"{_SAVEPOINTS}/verifications", trigger_id_of, body=body)


def verification(trigger_id: str) -> Call[Inspection[Verification]]:
    """Where a verification stands."""
    return Call("GET", f"{_SAVEPOINTS}/verifications/{trigger_id}", inspections.verification)


def compare_savepoints(
    left: str, right: str, examples: int | None = None, trigger_id: str | None = None
) -> Call[str]:
    """Begin to compare two snapshots; the trigger id to poll."""
    body = {"left": left, "right": right, "examples": examples, "triggerId": trigger_id}
    return Call("POST", f"{_SAVEPOINTS}/comparisons", trigger_id_of, body=body)


def comparison(trigger_id: str) -> Call[Inspection[Difference]]:
    """Where a comparison stands."""
    return Call("GET", f"{_SAVEPOINTS}/comparisons/{trigger_id}", inspections.comparison)
