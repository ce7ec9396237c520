"""A failure of a job as one flat row, for files and for programs."""

from __future__ import annotations

from typing import Any

from controlplane.jobs.failure_queries import Occurrence
from controlplane.jobs.models import RunFailure

COLUMNS = (
    *("at", "error", "sentence", "domain", "operator", "task", "task_manager", "run", "version"),
    *("replay", "restarted_at", "restored_checkpoint", "restored_path", "verdict", "echoes"),
    *("cause", "trace"),
)


def failure_row(row: RunFailure) -> dict[str, Any]:
    """By the names of COLUMNS; its run, version and replay were read with it."""
    return {
        "at": row.at.isoformat(),
        "error": row.name,
        "sentence": row.sentence,
        "domain": row.domain,
        "operator": row.operator,
        "task": row.task,
        "task_manager": row.task_manager,
        "run": row.run_id,
        "version": row.run.version.number,
        "replay": Occurrence(row).replay,
        "restarted_at": row.restarted_at.isoformat() if row.restarted_at else None,
        "restored_checkpoint": row.restored_checkpoint,
        "restored_path": row.restored_path,
        "verdict": row.verdict,
        "echoes": len(row.echoes),
        "cause": row.fingerprint,
        "trace": row.trace,
    }
