"""The outputs of a job as flat rows, shadow outputs among them, for files and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controlplane.jobs.output_files import Files
from controlplane.jobs.output_page import Output, OutputPage
from controlplane.jobs.output_series import Points

COLUMNS = (
    *("output", "kind", "target", "replay", "files", "size_bytes", "series"),
    *("newest_written_ms", "newest_event_ms", "reason"),
)


def output_rows(found: OutputPage) -> Iterator[dict[str, Any]]:
    """By the names of COLUMNS; what a replay writes beside an output has its name in it too."""
    for one in found.outputs:
        yield _row(one, one.sink.target, one.files, one.points)
        for other in one.beside:
            beside = _row(one, other.target, other.files, other.points)
            yield beside | {"replay": other.replay}


def _row(one: Output, target: str, files: Files | None, points: Points | None) -> dict[str, Any]:
    rows, seen = files.rows if files else None, files or points
    return {
        "output": one.sink.name,
        "kind": one.sink.kind,
        "target": target,
        "files": files.files if files else None,
        "size_bytes": files.size_bytes if files else None,
        "series": points.series if points else None,
        "newest_written_ms": files.newest_ms if files else None,
        "newest_event_ms": points.newest_ms if points else rows.newest_event_ms if rows else None,
        "reason": seen.reason if seen else one.reason,
    }
