"""A look into snapshots, in a process of its own: it may be slow and may need much memory.

    stdin    {"what": …, "places": [[url, root], …], …}      one line; its end is the parent's
    stdout   {"done": …, "total": …}                         a line each, as it goes on
             {"result": …} or {"error": {"name", "message"}}

    verification   every byte of the first place      ─▶ Verification
    comparison     the first place with the second    ─▶ Difference
    read           rows of one state, after a query   ─▶ StateRows

Errors   the caller limits time and memory. A query cannot reach files or the network: the files
         of the state are open by then, and the right to open more is given away.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from engine.checkpoint.inspection.difference import difference
from engine.checkpoint.inspection.questions import StateQuestion, StateRows, collected, query_of
from engine.checkpoint.inspection.reading import open_snapshot
from engine.checkpoint.inspection.verification import verify
from engine.cluster.answers.places import Place
from engine.errors import HeadwaterError, error_json
from engine.runtime.worker_lifeline import follow_in_death, read_orders, watch_parent

NICE = 10
"""Rows that flow come first."""


def main() -> int:
    """Do one look and print what was found, or why not."""
    follow_in_death()
    orders = read_orders()
    if orders is None:
        return 1
    watch_parent()
    os.nice(NICE)
    try:
        result = look(json.loads(orders))
    except HeadwaterError as error:
        _say({"error": error_json(error)})
        return 1
    _say({"result": result})
    return 0


def look(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is asked for, as JSON. Raises RestoreError, SnapshotCorrupt, StorageError."""
    places = [Place(url, root) for url, root in request["places"]]
    if request["what"] == "read":
        return _read(places[0], StateQuestion(**request["question"]))
    snapshots = [open_snapshot(place.url, place.open) for place in places]
    if request["what"] == "verification":
        return verify(snapshots[0], _progress).to_json()
    left, right = snapshots
    return difference(left, right, int(request["examples"]), _progress).to_json()


def _read(place: Place, question: StateQuestion) -> Mapping[str, Any]:
    snapshot = open_snapshot(place.url, partial(place.open, opens=question.sql is not None))
    rows = query_of(snapshot, question)
    if question.sql is not None:
        # Once, so that whatever Polars opens for itself is open before nothing more can be.
        snapshot.collect(rows.head(1))
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    return StateRows.of(collected(snapshot, rows, question), question.limit).to_answer()


def _progress(done: int, total: int) -> None:
    _say({"done": done, "total": total})


def _say(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
