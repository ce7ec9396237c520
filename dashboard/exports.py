"""What a page shows, as a file: CSV for spreadsheets, JSON for programs.

Guarantee  no cell of a CSV file is a formula: a text that a spreadsheet would compute begins with
           an apostrophe.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.http import HttpResponseBase, StreamingHttpResponse

FORMATS = ("csv", "json")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Line:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


def download(
    shape: str, name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> HttpResponseBase:
    """The rows as a file of that shape, sent while they are read."""
    content = _csv(columns, rows) if shape == "csv" else _json(columns, rows)
    kind = "text/csv; charset=utf-8" if shape == "csv" else "application/json"
    response = StreamingHttpResponse(content, content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{name}.{shape}"'
    return response


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_cell(row.get(name)) for name in columns])


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def _json(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    before = "["
    for row in rows:
        yield before + json.dumps({name: row.get(name) for name in columns}, ensure_ascii=False)
        before = ",\n"
    yield "]" if before != "[" else "[]"
