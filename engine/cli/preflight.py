"""The command that says what a job file would restore from a snapshot; it runs no job."""

from __future__ import annotations

import argparse

from engine.checkpoint.compatibility import check_restore
from engine.checkpoint.renames import parse_renames
from engine.checkpoint.restore import check_files, load_manifest
from engine.cli.local import captured
from engine.cli.table import table
from engine.graph.plan import plan_of

HEADS = ("operator", "state", "outcome", "rows", "bytes", "")


def preflight(options: argparse.Namespace) -> None:
    """Print a row per operator and state. Raises RestoreError when the restore would be refused."""
    plan = plan_of(captured(options))
    manifest = load_manifest(options.from_savepoint)
    check_files(manifest, options.from_savepoint)
    allowed = options.allow_non_restored or frozenset(options.allow_lost)
    report = check_restore(manifest, plan, allowed, parse_renames(options.rename))
    rows = [
        (row.uid, row.state or "", row.outcome.value, row.rows, row.size_bytes, row.reason)
        for row in report.rows
    ]
    print(table(HEADS, rows))
    for warning in report.warnings:
        print(f"warning: {warning}")
    report.raise_if_refused()
