"""Sinks that write files: in buckets, one per subtask, bucket and checkpoint that has rows.

    <path>/<bucket>/.<name>.inprogress    being written
    <path>/<bucket>/.<name>.pending       complete and on disk: staged by `prepare`
    <path>/<bucket>/<name><suffix>        committed: the only files that a reader should see

    <name> = <job>-<attempt>-<subtask>-<number>

Guarantee  exactly once: rows become visible by one rename, after the checkpoint that holds their
           positions is complete. A crash at any moment leaves a hidden file or none.
Needs      a folder of its own for each sink, on a local file system: rename must be atomic and
           fsync must mean it.
Errors     SinkError when the folder cannot be written, or a staged file is gone before its commit.
"""

from __future__ import annotations

import logging
import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import quote

import polars as pl

from engine.connectors.contract import Json, Sink, SinkContext, SinkWriter, require_columns
from engine.durable import make_folder, sync_folder
from engine.elements import RESERVED_COLUMNS
from engine.errors import SinkError

log = logging.getLogger(__name__)

ROLL_ROWS = 262_144
"""Rows of a bucket that memory holds before they get a file, however rare checkpoints are."""

IN_PROGRESS = ".inprogress"
PENDING = ".pending"


class BucketedFilesSink(Sink):
    """Writes rows to files below `path`, in a folder for each value of `bucket`.

    `bucket` is a column or an expression whose value, as text, names the folder.
    """

    kind: ClassVar[str]
    """The format, for people: e.g. "parquet"."""
    suffix: ClassVar[str]
    """What names of committed files end with."""

    def __init__(self, path: str | Path, *, bucket: str | pl.Expr | None = None) -> None:
        # Absolute from the start: a worker need not run in the folder that the job came from.
        self.path = Path(path).absolute()
        self.bucket = pl.col(bucket) if isinstance(bucket, str) else bucket

    @abstractmethod
    def encode(self, frame: pl.DataFrame, path: Path) -> None:
        """Write the rows as one file."""

    def check(self, schema: Mapping[str, pl.DataType]) -> None:
        """Refuse a stream without a column that names the bucket. Raises GraphError."""
        if self.bucket is not None:
            require_columns(schema, self.bucket.meta.root_names(), f"{str(self.path)!r}")

    def open(self, context: SinkContext) -> BucketedFilesWriter:
        """Open a writer; folders are made when there are rows for them."""
        return BucketedFilesWriter(self, context)

    def shadow(self, name: str) -> Self:
        """The same sink in the folder beside this one, `<path>@<name>`."""
        beside = copy(self)
        beside.path = self.path.with_name(f"{self.path.name}@{name}")
        return beside

    def describe(self) -> Mapping[str, str]:
        """The folder."""
        return {"kind": self.kind, "target": str(self.path)}


class BucketedFilesWriter(SinkWriter):
    """Writes the files of one subtask."""

    def __init__(self, sink: BucketedFilesSink, context: SinkContext) -> None:
        self._sink = sink
        self._root = sink.path
        self._bucket = sink.bucket
        self._job = _word(context.job_id)
        self._part = f"{self._job}-{_word(context.attempt_id)}-{context.subtask}"
        self._files = 0
        self._rows: dict[str, list[pl.DataFrame]] = {}
        self._in_progress: list[str] = []
        self._staged: set[str] = set()

    def write(self, frame: pl.DataFrame) -> None:
        """Keep rows by bucket; a bucket that has many goes to disk at once."""
        with self._reported():
            for bucket, rows in self._bucketed(frame.drop(RESERVED_COLUMNS, strict=False)):
                kept = self._rows.setdefault(bucket, [])
                kept.append(rows)
                if sum(part.height for part in kept) >= ROLL_ROWS:
                    self._roll(bucket)

    def prepare(self, checkpoint_id: int) -> Json | None:
        """Write all rows, force them to disk, and name the files for the commit."""
        with self._reported():
            for bucket in sorted(self._rows):
                self._roll(bucket)
            names, self._in_progress = self._in_progress, []
            for name in names:
                self._stage(name)
        return {"files": list(names)} if names else None

    def commit(self, committable: Json) -> None:
        """Rename the staged files into view. Raises SinkError when one is gone."""
        self._commit(committable, restored=False)

    def recover(self, committables: Sequence[Json]) -> None:
        """Commit what the snapshot staged, then drop whatever else this job left hidden."""
        for committable in committables:
            self._commit(committable, restored=True)
        with self._reported():
            for suffix in (IN_PROGRESS, PENDING):
                for left_over in self._root.rglob(f".{self._job}-*{suffix}"):
                    left_over.unlink(missing_ok=True)

    def _roll(self, bucket: str) -> None:
        """Write the rows of a bucket to a hidden file of their own."""
        self._files += 1
        name = str(Path(bucket) / f"{self._part}-{self._files}")
        path = _hidden(self._root, name, IN_PROGRESS)
        make_folder(path.parent)
        self._sink.encode(pl.concat(self._rows.pop(bucket)), path)
        self._in_progress.append(name)

    def _stage(self, name: str) -> None:
        """Complete a hidden file: when this returns, it survives a power cut."""
        path, staged = (_hidden(self._root, name, suffix) for suffix in (IN_PROGRESS, PENDING))
        with path.open("rb") as file:
            os.fsync(file.fileno())
        path.replace(staged)
        sync_folder(staged.parent)
        self._staged.add(name)

    def _bucketed(self, frame: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
        if frame.is_empty():
            return
        if self._bucket is None:
            yield "", frame
            return
        names = frame.select(self._bucket.cast(pl.String).alias("bucket")).to_series()
        if names.n_unique() == 1:
            yield _folder(names[0]), frame
            return
        for name in names.unique().sort():
            yield _folder(name), frame.filter(names.eq_missing(name))

    def _commit(self, committable: Json, *, restored: bool) -> None:
        with self._reported():
            for name in _names(committable, self._sink.kind):
                staged = _hidden(self._root, name, PENDING)
                finished = self._root / f"{name}{self._sink.suffix}"
                if staged.exists():
                    staged.replace(finished)
                    sync_folder(finished.parent)
                elif not finished.exists():
                    self._report_missing(name, restored)
                self._staged.discard(name)

    def _report_missing(self, name: str, restored: bool) -> None:
        """A file that this writer staged must be there; one of an old snapshot may be elsewhere."""
        if name in self._staged and not restored:
            msg = (
                f"staged file is gone before its commit: {self._root / name}; does another job "
                "write to this folder? give each sink a folder of its own"
            )
            raise SinkError(msg)
        log.warning("committed file is no longer in its folder: sink=%s file=%s", self._root, name)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pl.exceptions.PolarsError) as error:
            kind, root = self._sink.kind, self._root
            msg = f"{kind} folder cannot be written: {root}: {error}; check rights and space"
            raise SinkError(msg) from error


def _hidden(root: Path, name: str, suffix: str) -> Path:
    path = root / name
    return path.with_name(f".{path.name}{suffix}")


def _names(committable: Json, kind: str) -> Iterable[str]:
    files = committable.get("files") if isinstance(committable, dict) else None
    if not isinstance(files, list):
        msg = (
            f"committable is not one of a {kind} sink: got {committable!r}; "
            "give the new sink an uid of its own"
        )
        raise SinkError(msg)
    return [str(name) for name in files]


def _folder(bucket: str | None) -> str:
    """A bucket's value as one safe folder name, never hidden and never a parent."""
    name = quote("null" if bucket is None else bucket, safe=" +,;=@")
    return f"%2E{name[1:]}" if name.startswith(".") else name or "%"


def _word(identity: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", identity)
