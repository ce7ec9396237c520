"""The command that says what a job file would restore from a snapshot; it runs no job.

headwater preflight FILE -s PATH             reads the job file and the snapshot here
headwater preflight FILE -s PATH --remote    sends the file to the engine, which looks
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from engine.checkpoint.restoring.compatibility import RestoreRow, check_restore
from engine.checkpoint.restoring.inputs import look, positions_of
from engine.checkpoint.restoring.renames import parse_renames
from engine.checkpoint.restoring.restore import check_files, load_manifest
from engine.checkpoint.restoring.starts import parse_starts
from engine.cli.local import captured
from engine.cli.remote import Target, lost, program_of, uploaded
from engine.cli.table import table
from engine.errors import RestoreError
from engine.graph.plan import plan_of
from engine.rest.answers.snapshots import PreflightRow
from engine.rest.model.requests import PreflightRequest

HEADS = ("operator", "state", "outcome", "rows", "bytes", "")


def preflight(options: argparse.Namespace) -> None:
    """Print a row per operator and state. Raises RestoreError when the restore would be refused."""
    graph, renames = captured(options), parse_renames(options.rename)
    manifest = load_manifest(options.from_savepoint)
    check_files(manifest, options.from_savepoint)
    starts = parse_starts(options.begin)
    inputs = look(graph, positions_of(renames.applied(manifest), starts), starts)
    accepted = frozenset(options.accept_missing_input)
    report = check_restore(manifest, plan_of(graph), lost(options), renames, inputs, accepted)
    _print(report.rows, report.warnings)
    report.raise_if_refused()


def remote_preflight(options: argparse.Namespace, target: Target) -> None:
    """The same, as the engine sees it. Raises RestoreError, and what the client can."""
    program = program_of(options, *uploaded(options, target))
    report = target.engine.preflight(
        PreflightRequest(
            program,
            options.from_savepoint,
            lost(options),
            frozenset(options.accept_missing_input),
        )
    )
    _print(report.rows, report.warnings)
    if not report.ok:
        msg = f"snapshot does not fit the job: {'; '.join(report.refusals)}"
        raise RestoreError(msg)


def _print(rows: Iterable[RestoreRow | PreflightRow], warnings: Sequence[str]) -> None:
    cells = [
        (row.uid, row.state or "", str(row.outcome), row.rows, row.size_bytes, row.reason)
        for row in rows
    ]
    print(table(HEADS, cells))
    for warning in warnings:
        print(f"warning: {warning}")
