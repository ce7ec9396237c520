"""Questions about one state of a snapshot, and their answers as rows.

    Snapshot, StateQuestion --rows_of--> DataFrame --StateRows.of--> plain JSON

Shapes   a query sees the rows that are left by `key`, as the table `state`.
Errors   RestoreError for a state, a key or a query that cannot be meant, SnapshotCorrupt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from engine.checkpoint.inspection.plain_values import plain
from engine.checkpoint.inspection.reading import Snapshot, of_key
from engine.errors import RestoreError

JsonObject = Mapping[str, Any]

TABLE = "state"
"""What a query calls the rows."""

MAX_ANSWER_BYTES = 1 << 20
"""Of rows as JSON: small enough that the job manager serves other requests meanwhile."""

_READS_FILES = re.compile(r"\bread_(csv|parquet|ipc|json|ndjson)\b[\"`]?\s*\(", re.IGNORECASE)
"""Table functions of Polars. This is for a good sentence: whoever must be sure takes away the right
to open files, as `cluster.inspection` does."""


@dataclass(frozen=True, slots=True)
class StateQuestion:
    """Which rows are wanted."""

    operator: str
    state: str
    key: Mapping[str, str] = field(default_factory=dict)
    """Columns of the key to their values as text; empty is every key."""
    sql: str | None = None
    limit: int | None = None
    """So many rows at most; None is all."""


@dataclass(frozen=True, slots=True)
class StateRows:
    """Rows of a state, or what a query made of them."""

    columns: Mapping[str, str]
    """Names to Polars' types."""
    rows: Sequence[Sequence[Any]]
    """Values as `plain_values` writes them."""
    truncated: bool = False
    """There are more."""

    @classmethod
    def of(cls, found: pl.DataFrame, limit: int | None) -> StateRows:
        """Take what `rows_of` gave."""
        shown = found if limit is None else found.head(limit)
        columns = {name: str(dtype) for name, dtype in found.schema.items()}
        rows = [[plain(value) for value in row] for row in shown.iter_rows()]
        return cls(columns, rows, shown.height < found.height)

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        columns = [{"name": name, "type": dtype} for name, dtype in self.columns.items()]
        return {"columns": columns, "rows": list(self.rows), "truncated": self.truncated}

    def to_answer(self) -> JsonObject:
        """Return plain JSON for an answer over HTTP. Raises RestoreError when it is too large."""
        body = self.to_json()
        size = len(json.dumps(body))
        if size > MAX_ANSWER_BYTES:
            msg = (
                f"rows are too large for one answer: {size:,} bytes, at most "
                f"{MAX_ANSWER_BYTES:,}; ask for fewer rows or columns"
            )
            raise RestoreError(msg)
        return body

    @classmethod
    def from_json(cls, value: JsonObject) -> StateRows:
        """Read what `to_json` gave."""
        columns = {str(column["name"]): str(column["type"]) for column in value["columns"]}
        return cls(columns, value["rows"], bool(value["truncated"]))


def query_of(snapshot: Snapshot, question: StateQuestion) -> pl.LazyFrame:
    """The rows of a state that are asked for, before any query. Opens the files."""
    state = snapshot.state(question.operator, question.state)
    return of_key(snapshot.scan(state), state, question.key)


def rows_of(snapshot: Snapshot, question: StateQuestion) -> pl.DataFrame:
    """Answer a question: the rows, and one more than wanted when there are more."""
    return collected(snapshot, query_of(snapshot, question), question)


def collected(snapshot: Snapshot, rows: pl.LazyFrame, question: StateQuestion) -> pl.DataFrame:
    """Run the rest of a question over the rows that `query_of` gave."""
    if question.sql is None:
        return snapshot.collect(_limited(rows, question))
    outside = _READS_FILES.search(question.sql)
    if outside is not None:
        msg = f"query may read the table {TABLE!r} and no files: got {outside[0]}…; leave it out"
        raise RestoreError(msg)
    try:
        found = pl.SQLContext({TABLE: rows}).execute(question.sql)
        return _limited(found, question).collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        msg = (
            f"query cannot be run: {reason}: got {question.sql!r}; the rows are the table {TABLE!r}"
        )
        raise RestoreError(msg) from error


def _limited(rows: pl.LazyFrame, question: StateQuestion) -> pl.LazyFrame:
    return rows if question.limit is None else rows.head(question.limit + 1)
