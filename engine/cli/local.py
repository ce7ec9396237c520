"""Commands that read files here: the graph of a job file, the content of a snapshot."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from engine.checkpoint.manifest import Manifest, OperatorEntry
from engine.checkpoint.restore import load_manifest
from engine.cli.table import table
from engine.elements import MAX_TIME, MIN_TIME, Micros
from engine.graph.plan import OperatorPlan, Plan, plan_of
from engine.stream.capture import capture
from engine.stream.recording import PARALLELISM

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def plan(options: argparse.Namespace) -> None:
    """Run a job file up to its `execute()` and print the graph."""
    settings = dict(options.settings)
    if options.parallelism is not None:
        settings[PARALLELISM] = str(options.parallelism)
    planned = plan_of(capture(Path(options.file), options.args, settings))
    print(planned.to_json() if options.json else "\n".join(_drawn(planned)))


def state(options: argparse.Namespace) -> None:
    """Print what a snapshot holds."""
    manifest = load_manifest(options.path)
    if options.json:
        print(json.dumps(manifest.to_json(), indent=1))
        return
    print("\n".join(_described(manifest)))


def _drawn(planned: Plan) -> Iterator[str]:
    yield f"job {planned.name}, max parallelism {planned.max_parallelism}"
    names = {vertex.id: vertex.name for vertex in planned.vertices}
    for vertex in planned.vertices:
        yield ""
        yield f"{vertex.name}  (x {vertex.parallelism})"
        for edge in planned.edges:
            if edge.target == vertex.id:
                keys = f"({', '.join(edge.keys)})" if edge.keys else ""
                yield f"  takes {edge.partitioning}{keys} from {names[edge.source]}"
        for operator in vertex.operators:
            yield f"  {operator.kind:9} {operator.uid}{_states(operator)}"
    for warning in planned.warnings:
        yield f"warning: {warning}"


def _states(operator: OperatorPlan) -> str:
    if not operator.states:
        return ""
    return "  keeps " + ", ".join(f"{state.name} ({state.kind})" for state in operator.states)


def _described(manifest: Manifest) -> Iterator[str]:
    created = _time(Micros(manifest.created_ms * 1_000))
    yield f"{manifest.kind} {manifest.checkpoint_id} of job {manifest.job_name}"
    yield f"job id      {manifest.job_id}"
    yield f"created     {created} by engine {manifest.engine_version}"
    yield f"event time  {_time(manifest.min_watermark)}"
    yield f"size        {manifest.size_bytes:,} bytes"
    rows = [row for entry in manifest.operators for row in _rows(entry)]
    if rows:
        head = ("operator", "holds", "kind", "rows", "bytes", "files", "parallelism")
        yield ""
        yield table(head, rows)
    splits = [row for entry in manifest.operators for row in _splits(entry)]
    if splits:
        yield ""
        yield table(("source", "split", "position", "watermark"), splits)


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
        reached = "finished" if split.finished else _time(split.watermark)
        yield entry.uid, split_id, json.dumps(split.position), reached


def _time(time: Micros) -> str:
    if time == MIN_TIME:
        return "unknown"
    if time == MAX_TIME:
        return "end of input"
    return (_EPOCH + timedelta(microseconds=time)).strftime("%Y-%m-%d %H:%M:%S UTC")
