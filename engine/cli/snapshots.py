"""Commands that look into snapshots here; no engine is needed.

headwater savepoint show PATH            what it holds
headwater savepoint verify PATH          reads every byte; exit code 1 when a file is damaged
headwater savepoint diff LEFT RIGHT      row by row; exit code 1 when they differ
headwater savepoint read PATH …          the rows of one state, all or those of a key or query
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence

import polars as pl

from engine.checkpoint.difference import Difference, SplitDifference, difference
from engine.checkpoint.reading import of_key, open_snapshot
from engine.checkpoint.restore import load_manifest
from engine.cli.manifests import described, time_text
from engine.cli.table import table
from engine.errors import RestoreError
from engine.operators.sources.source import SplitState

TABLE = "state"
"""What a query calls the rows."""


def show(options: argparse.Namespace) -> int:
    """Print what a snapshot holds."""
    manifest = load_manifest(options.path)
    if options.json:
        print(json.dumps(manifest.to_json(), indent=1))
    else:
        print("\n".join(described(manifest)))
    return 0


def verify(options: argparse.Namespace) -> int:
    """Read every file, and name each that is not as it was written."""
    snapshot = open_snapshot(options.path)
    files = [file for _, state in snapshot.states() for file in state.files]
    problems = list(snapshot.problems())
    for problem in problems:
        print(f"damaged: {problem}", file=sys.stderr)
    size = sum(file.size_bytes for file in files)
    good = len(files) - len(problems)
    print(f"{good} of {len(files)} files are as they were written ({size:,} bytes in all)")
    return 1 if problems else 0


def diff(options: argparse.Namespace) -> int:
    """Print in which rows two snapshots differ."""
    left, right = open_snapshot(options.left), open_snapshot(options.right)
    found = difference(left, right, options.examples)
    print(_json(found) if options.json else "\n".join(_differences(found)))
    return 0 if found.is_equal else 1


def read(options: argparse.Namespace) -> int:
    """Print rows of one state."""
    snapshot = open_snapshot(options.path)
    state = snapshot.state(options.operator, options.state)
    rows = of_key(snapshot.scan(state), state, dict(options.key))
    if options.sql is not None:
        rows = _queried(rows, options.sql)
    found = snapshot.collect(rows if options.limit is None else rows.head(options.limit + 1))
    _print_rows(found, options.limit, options.format)
    return 0


def _queried(rows: pl.LazyFrame, sql: str) -> pl.LazyFrame:
    try:
        found = pl.SQLContext({TABLE: rows}).execute(sql)
        found.collect_schema()
    except pl.exceptions.PolarsError as error:
        msg = f"query cannot be run: {error}: got {sql!r}; the rows are the table {TABLE!r}"
        raise RestoreError(msg) from error
    return found


def _print_rows(rows: pl.DataFrame, limit: int | None, style: str) -> None:
    shown = rows if limit is None else rows.head(limit)
    if style == "csv":
        print(shown.write_csv(), end="")
    elif style == "jsonl":
        print(shown.write_ndjson(), end="")
    else:
        print(table(shown.columns, shown.rows()))
    if shown.height < rows.height:
        print(f"there are more than {shown.height:,} rows; see all with --all", file=sys.stderr)


def _differences(found: Difference) -> Iterator[str]:
    if found.is_equal:
        yield "the two hold the same"
        return
    rows = [
        (one.uid, one.state, one.equal, one.changed, one.only_left, one.only_right)
        for one in found.states
    ]
    if rows:
        yield table(("operator", "state", "equal", "changed", "only left", "only right"), rows)
    for state in found.states:
        if state.reason:
            yield f"{state.uid}, {state.state}: {state.reason}"
        for example in state.examples:
            yield f"{state.uid}, {state.state}: {json.dumps(example, default=str)}"
    if found.splits:
        yield ""
        yield table(("source", "split", "left", "right"), [_split(one) for one in found.splits])


def _split(split: SplitDifference) -> Sequence[str]:
    return split.uid, split.split, _place(split.left), _place(split.right)


def _place(state: SplitState | None) -> str:
    if state is None:
        return "not there"
    end = ", finished" if state.finished else ""
    return f"{json.dumps(state.position)} at {time_text(state.watermark)}{end}"


def _json(found: Difference) -> str:
    value = {
        "equal": found.is_equal,
        "states": [
            {
                "operator": one.uid,
                "state": one.state,
                "equal": one.equal,
                "changed": one.changed,
                "only_left": one.only_left,
                "only_right": one.only_right,
                "reason": one.reason,
                "examples": list(one.examples),
            }
            for one in found.states
        ],
        "splits": [
            dict(zip(("operator", "split", "left", "right"), _split(split), strict=True))
            for split in found.splits
        ],
    }
    return json.dumps(value, indent=1, default=str)


VERBS = {"show": show, "verify": verify, "diff": diff, "read": read}
