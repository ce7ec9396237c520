"""Files of one record per line: what the JSON lines source is made of.

    file ──blocks of bytes──▶ whole lines ──max_rows──▶ decode ──▶ frame
                              ^ position                   └─ fails ─▶ halves … the bad line

Shapes     a split is a file: its id is its path below the first folder without a wildcard, so the
           folder may move between two runs.
Position   {"byte": where the next line begins, "line": how many lines lie before it}. In a `.gz`
           file bytes are counted unpacked, and a restore unpacks all that lies before.
Order      as in the file. Bounded: a split ends where its file ends when the reader gets there.
Late       nothing here depends on the size of polls: a line is read, left out or refused by itself.
Guarantee  replayable from any position, as long as nothing before it changes: exactly once with a
           sink that is. Lines may be appended between two runs.
Errors     SourceError for a file that is missing or has become shorter; DataError for a bad line.
Needs      UTF-8, with or without a byte order mark; lines end with LF or CR LF; the last one may
           lack its end; empty ones are left out.
"""

from __future__ import annotations

import glob
import gzip
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, cast, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.connectors.contract import Json, Polled, Source, SplitReader
from engine.elements import Micros
from engine.errors import ConfigError, DataError, SourceError
from engine.state.schema import TypeLike, as_type

BLOCK_BYTES = 1 << 20
"""Read at once: large against the cost of a call, small against the memory of a worker."""

SHOWN = 120
"""Characters of a bad line in a message."""

MARK = b"\xef\xbb\xbf"

BadLines = Literal["fail", "skip"]


class LineFilesSource(Source):
    """Reads a file, or all files that a pattern such as `logs/**/*.jsonl` names."""

    bounded = True
    kind = "lines"
    """What a line should be, for messages."""

    def __init__(
        self, path: str | Path, *, schema: Mapping[str, TypeLike], bad_lines: BadLines = "fail"
    ) -> None:
        """Declare the columns: files are not looked at before the job runs. Raises ConfigError."""
        if not schema:
            msg = f"source of {str(path)!r} has no columns: got schema={{}}; name them and types"
            raise ConfigError(msg)
        if bad_lines not in get_args(BadLines):
            msg = f"bad_lines of {str(path)!r} is not known: got {bad_lines!r}; use fail or skip"
            raise ConfigError(msg)
        # Absolute from the start: a worker need not run in the folder that the job came from.
        self.path = Path(path).absolute()
        # The folder that we are in may have brackets in its name.
        self._plain = len(self.path.parts) - len(Path(path).parts)
        self.columns = {name: as_type(dtype) for name, dtype in schema.items()}
        self.bad_lines = bad_lines

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The columns as declared."""
        return self.columns

    def splits(self) -> Sequence[str]:
        """The files by name. Raises SourceError when there is none."""
        root = self._root
        found = root.glob(str(self.path.relative_to(root)))
        paths = [path.relative_to(root) for path in found if path.is_file()]
        names = [str(path) for path in paths if not any(part[0] == "." for part in path.parts)]
        if not names:
            msg = f"no file matches {str(self.path)!r}; check the path, which is seen from a worker"
            raise SourceError(msg)
        return sorted(names)

    def open(self, split: str, position: Json | None) -> SplitReader:
        """Open a file where a snapshot left it. Raises SourceError."""
        byte, line = (0, 0) if position is None else _parse(split, position)
        reader = LineReader(self, self._root / split, byte, line)
        try:
            reader.begin()
        except SourceError:
            reader.close()
            raise
        return reader

    def missing(self, split: str, position: Json | None) -> str:
        """The lines of a file that is gone, or does not reach to the position any more.

        A packed file is only looked for: how long it is unpacked would take reading it.
        """
        byte, line = (0, 0) if position is None else _parse(split, position)
        path = self._root / split
        if not path.is_file():
            return f"lines from {line + 1:,} on: no file {path}"
        if path.suffix != ".gz" and (size := path.stat().st_size) < byte:
            return f"lines from {line + 1:,} on: {path} ends at byte {size:,}, before byte {byte:,}"
        return ""

    @abstractmethod
    def decode(self, lines: bytes) -> pl.DataFrame:
        """Make rows of whole lines, none of them empty. Raises PolarsError if one is bad.

        Two blocks together must give what each gives alone.
        """

    @property
    def _root(self) -> Path:
        """The first folder without a wildcard."""
        parts = enumerate(self.path.parts)
        wild = (at for at, part in parts if at >= self._plain and glob.has_magic(part))
        return Path(*self.path.parts[: next(wild, len(self.path.parts) - 1)])


class LineReader(SplitReader):
    """Reads one file from a line on."""

    def __init__(self, source: LineFilesSource, path: Path, byte: int, line: int) -> None:
        self._source = source
        self._path = path
        self._block = b""
        self._ends = np.zeros(0, dtype=np.int64)
        self._next = 0
        self._complete = False
        self._byte, self._line = byte, line
        with self._reported():
            self._file = _opened(path)

    def begin(self) -> None:
        """Go to the position. Raises SourceError when the file does not reach so far."""
        with self._reported():
            if not self._byte:
                self._byte = len(MARK) if self._file.read(len(MARK)) == MARK else 0
            elif self._file.seek(self._byte - 1) + len(self._file.read(1)) != self._byte:
                msg = (
                    f"file is shorter than the stored position: {self._path} ends before byte "
                    f"{self._byte}; restore the data that the snapshot was taken on"
                )
                raise SourceError(msg)
            self._file.seek(self._byte)

    def poll(self, max_rows: int, now: Micros) -> Polled:
        """Return the rows of the next `max_rows` lines."""
        self._fill(max_rows)
        chosen = self._ends[self._next : self._next + max_rows]
        if not len(chosen):
            return Polled(finished=True, pending_rows=0)
        begin, end = self._start_of(self._next), int(chosen[-1])
        lines = self._block[begin:end]
        frame, skipped = self._rows(lines)
        self._next += len(chosen)
        self._byte, self._line = self._byte + len(lines), self._line + len(chosen)
        finished = self._complete and self._next == len(self._ends)
        return Polled(
            frame if frame.height else None,
            retry_at=now,
            finished=finished,
            pending_rows=0 if finished else None,
            skipped=skipped,
        )

    @property
    def position(self) -> Json:
        """The next line."""
        return {"byte": self._byte, "line": self._line}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _start_of(self, line: int) -> int:
        return int(self._ends[line - 1]) if line else 0

    def _fill(self, lines: int) -> None:
        """Read on until the block holds so many lines, or the rest of the file."""
        if self._complete or len(self._ends) - self._next >= lines:
            return
        begin = self._start_of(self._next)
        parts, ends = [self._block[begin:]], [self._ends[self._next :] - begin]
        size, found = len(parts[0]), len(ends[0])
        while found < lines and not self._complete:
            with self._reported():
                parts.append(self._file.read(BLOCK_BYTES))
            ends.append(size + 1 + _newlines(parts[-1]))
            size, found = size + len(parts[-1]), found + len(ends[-1])
            self._complete = not parts[-1]
        self._block, self._next, self._ends = b"".join(parts), 0, np.concatenate(ends)
        if self._complete and size > self._start_of(found):
            self._ends = np.append(self._ends, size)

    def _rows(self, lines: bytes) -> tuple[pl.DataFrame, int]:
        """All rows of these lines, and how many lines were left out. Raises DataError."""
        try:
            return self._source.decode(lines), 0
        except pl.exceptions.PolarsError as error:
            # Not splitlines: that ends lines at a lone CR too.
            texts = [line + b"\n" for line in lines.removesuffix(b"\n").split(b"\n")]
            return self._careful(texts, self._line + 1, error)

    def _careful(
        self, lines: Sequence[bytes], first: int, error: pl.exceptions.PolarsError
    ) -> tuple[pl.DataFrame, int]:
        """Halve until a bad line is alone: `first` is its number in the file."""
        if len(lines) == 1:
            return self._bad(lines[0], first, error)
        half = len(lines) // 2
        frames, skipped = [], 0
        for part, number in ((lines[:half], first), (lines[half:], first + half)):
            try:
                frame, left_out = self._source.decode(b"".join(part)), 0
            except pl.exceptions.PolarsError as again:
                frame, left_out = self._careful(part, number, again)
            frames.append(frame)
            skipped += left_out
        return pl.concat(frames), skipped

    def _bad(
        self, line: bytes, number: int, error: pl.exceptions.PolarsError
    ) -> tuple[pl.DataFrame, int]:
        if self._source.bad_lines == "skip":
            return pl.DataFrame(schema=self._source.columns), 1
        reason = _short(str(error).splitlines()[0])
        text = _short(line.decode(errors="replace").strip())
        msg = (
            f"line {number} of {self._path} is not {self._source.kind}: {reason}: got {text}; "
            "mend the file, or pass bad_lines='skip'"
        )
        raise DataError(msg) from error

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError, zlib.error) as error:
            msg = f"file cannot be read: {self._path}: {error}; check that it is there and whole"
            raise SourceError(msg) from error


def _newlines(block: bytes) -> NDArray[np.int64]:
    return np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))


def _opened(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path))
    return path.open("rb")


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _parse(split: str, position: Json) -> tuple[int, int]:
    match position:
        case {"byte": int(byte), "line": int(line)} if byte >= 0 <= line:
            return byte, line
    msg = (
        f"split '{split}' has a stored position of another kind of source: got {position!r}; "
        "give the new source an uid of its own"
    )
    raise SourceError(msg)
