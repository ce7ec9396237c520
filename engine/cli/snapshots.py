"""Commands that look into snapshots: here, or with --remote where the engine is.

headwater savepoint show PATH            what it holds
headwater savepoint verify PATH          reads every byte; exit code 1 when a file is damaged
headwater savepoint diff LEFT RIGHT      row by row; exit code 1 when they differ
headwater savepoint read PATH …          the rows of one state, all or those of a key or query

With --remote it is the engine at --url that looks: within its own folders, and its limits.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence

from engine.checkpoint.inspection.difference_report import Difference, SplitDifference
from engine.checkpoint.inspection.plain_values import plain
from engine.checkpoint.inspection.questions import StateQuestion
from engine.cli.looks import Look
from engine.cli.manifests import described, time_text
from engine.cli.rows import print_rows
from engine.cli.table import table
from engine.operators.sources.source import SplitState


def show(options: argparse.Namespace, look: Look) -> int:
    """Print what a snapshot holds."""
    manifest = look.manifest(options.path)
    if options.json:
        print(json.dumps(manifest.to_json(), indent=1))
    else:
        print("\n".join(described(manifest)))
    return 0


def verify(options: argparse.Namespace, look: Look) -> int:
    """Have every file read, and name each that is not as it was written."""
    found = look.verified(options.path)
    for problem in found.problems:
        print(f"damaged: {problem}", file=sys.stderr)
    good = found.files - len(found.problems)
    size = f"{found.size_bytes:,} bytes in all"
    print(f"{good} of {found.files} files are as they were written ({size})")
    return 0 if found.is_whole else 1


def diff(options: argparse.Namespace, look: Look) -> int:
    """Print in which rows two snapshots differ."""
    found = look.difference(options.left, options.right, options.examples)
    if options.json:
        print(json.dumps(found.to_json(), indent=1))
    else:
        print("\n".join(_differences(found)))
    return 0 if found.is_equal else 1


def read(options: argparse.Namespace, look: Look) -> int:
    """Print rows of one state."""
    question = StateQuestion(
        options.operator, options.state, dict(options.key), options.sql, options.limit
    )
    found, more = look.rows(options.path, question)
    print_rows(found, options.format)
    if more:
        hint = "; see all with --all" if options.limit == found.height else ""
        print(f"there are more than {found.height:,} rows{hint}", file=sys.stderr)
    return 0


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
            yield f"{state.uid}, {state.state}: {json.dumps(plain(example))}"
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


VERBS = {"show": show, "verify": verify, "diff": diff, "read": read}
