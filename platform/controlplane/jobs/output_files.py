"""What lies in a folder that a job writes: how much, how new, and the last rows of the newest file.

    <target>/…/<name>.parquet | .jsonl      committed files; those that begin with a dot are not yet

Cost     a folder is looked through up to ENTRIES entries; of the newest file the end is read.
Needs    the folder to be on this machine, inside one of `HEADWATER_OUTPUT_FOLDERS`: jobs name
         any path, and this process may be allowed to read more than those who look may see.
Missing  `reason` says why nothing can be told.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
from django.conf import settings

from controlplane.moments import epoch_ms, moment

ENTRIES = 20_000
ROWS = 10
COLUMNS = 40
CHARACTERS = 200
END_BYTES = 256 * 1024
"""Of a file of lines, as much as ten very long ones take."""
EVENT_COLUMNS = ("event_time", "window_end", "time", "timestamp")
"""Where rows carry their event time, the first that is there."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows as text."""

    columns: tuple[tuple[str, str], ...]
    """Name and type."""
    rows: tuple[tuple[str, ...], ...]
    """The last ones, newest last."""
    newest_event_ms: int | None = None
    more_columns: int = 0


@dataclass(frozen=True, slots=True)
class Files:
    """A folder."""

    files: int = 0
    size_bytes: int = 0
    waiting: int = 0
    """Hidden ones: they become visible with the next checkpoint."""
    newest_ms: int | None = None
    """When the newest one became visible."""
    newest: str = ""
    is_partial: bool = False
    """There are more entries than are looked at."""
    rows: Rows | None = None
    reason: str = ""


def look_into(target: str, *, with_rows: bool = True) -> Files:
    """What is in the folder; never raises."""
    folder = Path(target).resolve()
    roots = [Path(root).resolve() for root in settings.HEADWATER_OUTPUT_FOLDERS]
    if not any(folder.is_relative_to(root) for root in roots):
        allowed = ", ".join(map(str, roots))
        return Files(
            reason=f"the folder is not one that this page may read: allowed are {allowed}; "
            "HEADWATER_OUTPUT_FOLDERS names them"
        )
    try:
        return _seen(folder, with_rows=with_rows)
    except FileNotFoundError:
        return Files(reason="nothing has been written there yet, as seen from this machine")
    except OSError as error:
        return Files(reason=f"the folder cannot be read: {error.strerror or error}")


def _seen(folder: Path, *, with_rows: bool) -> Files:
    files = size = waiting = looked = 0
    newest: tuple[float, str] = (0.0, "")
    for entry in _entries(folder):
        looked += 1
        if looked > ENTRIES:
            break
        if entry.name.startswith("."):
            waiting += 1
            continue
        known = entry.stat(follow_symlinks=False)
        files, size = files + 1, size + known.st_size
        newest = max(newest, (known.st_mtime, entry.path))
    if not files:
        reason = "" if waiting else "the folder is empty"
        return Files(waiting=waiting, reason=reason)
    path = Path(newest[1])
    rows, reason = _last_rows(path) if with_rows else (None, "")
    return Files(
        files=files,
        size_bytes=size,
        waiting=waiting,
        newest_ms=int(newest[0] * 1_000),
        newest=str(path.relative_to(folder)),
        is_partial=looked > ENTRIES,
        rows=rows,
        reason=reason,
    )


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Regular files below the folder; links are not followed."""
    folders = [str(folder)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry


def _last_rows(path: Path) -> tuple[Rows | None, str]:
    """The end of one file, or why it cannot be read: it may be of any program."""
    try:
        if path.suffix == ".parquet":
            return rows_of(pl.scan_parquet(path, glob=False).tail(ROWS).collect()), ""
        if path.suffix in {".jsonl", ".ndjson", ".json"}:
            return rows_of(_end_of_lines(path)), ""
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        return None, f"the newest file cannot be read: {path.name}: {str(error)[:CHARACTERS]}"
    return None, f"the newest file is of no form that can be shown: {path.name}"


def _end_of_lines(path: Path) -> pl.DataFrame:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - END_BYTES))
        lines = file.read().split(b"\n")
    whole = lines[1:] if size > END_BYTES else lines
    parsed = [json.loads(line) for line in whole[-ROWS - 1 :] if line.strip()][-ROWS:]
    return pl.DataFrame(parsed, infer_schema_length=None)


def rows_of(frame: pl.DataFrame) -> Rows:
    """A small frame as text."""
    names = frame.columns[:COLUMNS]
    kinds = tuple((name, str(frame.schema[name])) for name in names)
    rows = tuple(tuple(_text(value) for value in row) for row in frame.select(names).rows())
    newest = _newest_event(frame)
    return Rows(kinds, rows, newest, max(0, len(frame.columns) - COLUMNS))


def _newest_event(frame: pl.DataFrame) -> int | None:
    name = next((name for name in EVENT_COLUMNS if name in frame.columns), None)
    if name is None or frame.is_empty():
        return None
    value = frame[name].max()
    if isinstance(value, datetime):
        return epoch_ms(value if value.tzinfo else value.replace(tzinfo=moment(0).tzinfo))
    return value // 1_000 if name == "event_time" and isinstance(value, int) else None


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else _compact(value)
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}…"


def _compact(value: Any) -> str:
    if isinstance(value, Mapping | Sequence) and not isinstance(value, bytes):
        return re.sub(r"\s+", " ", json.dumps(value, ensure_ascii=False, default=str))
    return str(value)
