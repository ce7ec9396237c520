"""What a snapshot holds, as text for people: from its manifest alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from engine.checkpoint.format.entries import OperatorEntry
from engine.checkpoint.format.manifest import Manifest
from engine.cli.table import table
from engine.elements import MAX_TIME, MIN_TIME, Micros

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def described(manifest: Manifest) -> Iterator[str]:
    """The whole snapshot, line by line."""
    created = time_text(Micros(manifest.created_ms * 1_000))
    yield f"{manifest.kind} {manifest.checkpoint_id} of job {manifest.job_name}"
    yield f"job id      {manifest.job_id}"
    yield f"created     {created} by engine {manifest.engine_version}"
    yield f"event time  {time_text(manifest.min_watermark)}"
    yield f"size        {manifest.size_bytes:,} bytes{_shared(manifest)}"
    rows = [row for entry in manifest.operators for row in _rows(entry)]
    if rows:
        head = ("operator", "holds", "kind", "rows", "bytes", "files", "parallelism")
        yield ""
        yield table(head, rows)
    splits = [row for entry in manifest.operators for row in _splits(entry)]
    if splits:
        yield ""
        yield table(("source", "split", "position", "watermark"), splits)


def _shared(manifest: Manifest) -> str:
    earlier = manifest.size_bytes - manifest.written_bytes
    return f", {earlier:,} of them in files of earlier checkpoints" if earlier else ""


def _rows(entry: OperatorEntry) -> Iterator[tuple[object, ...]]:
    for held in entry.states:
        files = len(held.files)
        yield (
            entry.uid,
            held.name,
            held.kind.value,
            held.rows,
            held.size_bytes,
            files,
            entry.parallelism,
        )
    if entry.committables:
        staged = len(entry.committables)
        yield (entry.uid, f"{staged} staged", "output", 0, 0, 0, entry.parallelism)


def _splits(entry: OperatorEntry) -> Iterator[tuple[object, ...]]:
    for split_id, split in sorted(entry.splits.items()):
        reached = "finished" if split.finished else time_text(split.watermark)
        yield entry.uid, split_id, json.dumps(split.position), reached


def time_text(time: Micros) -> str:
    """Event time for people."""
    if time == MIN_TIME:
        return "unknown"
    if time == MAX_TIME:
        return "end of input"
    return (_EPOCH + timedelta(microseconds=time)).strftime("%Y-%m-%d %H:%M:%S UTC")
