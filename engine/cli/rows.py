"""Rows of state on the terminal, for people and for programs."""

from __future__ import annotations

import polars as pl

from engine.checkpoint.inspection.questions import StateRows
from engine.cli.table import table


def frame_of(found: StateRows) -> pl.DataFrame:
    """The rows that an engine has answered, their values as plain JSON."""
    names = list(found.columns)
    # Not strict: a float that JSON cannot write is text among numbers.
    return pl.DataFrame(
        found.rows, schema=names, orient="row", infer_schema_length=None, strict=False
    )


def print_rows(rows: pl.DataFrame, style: str) -> None:
    """Print rows as a table, as CSV, or as JSON lines."""
    if style == "csv":
        print(rows.write_csv(), end="")
    elif style == "jsonl":
        print(rows.write_ndjson(), end="")
    else:
        print(table(rows.columns, rows.rows()))
