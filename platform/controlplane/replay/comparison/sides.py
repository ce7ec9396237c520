"""What old and new version have written, without reading again what has been read.

    folder ──stat──▶ as noted ──▶ its span of event time is known
                 └─▶ new or changed ──▶ its time column is read; what it covered and covers now
                                        has changed, as has what is gone
    measurement ──▶ its span is the store's

Units    spans and stretches are event times, µs, [from, to).
Errors   OutputUnreadable, OSError or PolarsError for what cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import polars as pl

from controlplane.metrics.store import embedded_store
from controlplane.replay.comparison.compare import span
from controlplane.replay.models import ReplayOutput, SeenFile
from controlplane.replay.outputs.handing import terms_of
from controlplane.replay.outputs.tables import committed, points_of, scan_files
from controlplane.replay.outputs.targets import POINTS

Stretch = tuple[int, int]


class Side(Protocol):
    """One side of a comparison."""

    @property
    def first(self) -> int | None:
        """The oldest time; None when there is nothing."""

    @property
    def newest(self) -> int | None:
        """The newest time; None when there is nothing."""

    def table(self, since_us: int, until_us: int) -> pl.LazyFrame:
        """What holds all rows of a stretch, and may hold more."""


@dataclass(frozen=True, slots=True)
class Files:
    """A folder, as it was listed."""

    folder: Path
    known: Sequence[SeenFile]
    news: Sequence[SeenFile]
    """Those of the known that were read now."""
    gone: Sequence[SeenFile]
    """What is no more, or was otherwise before."""

    @property
    def first(self) -> int | None:
        """The oldest time."""
        return min((one.first_us for one in self.known if one.first_us is not None), default=None)

    @property
    def newest(self) -> int | None:
        """The newest time."""
        return max((one.last_us for one in self.known if one.last_us is not None), default=None)

    @property
    def changed(self) -> Iterator[Stretch]:
        """Stretches whose rows may be others than they were."""
        for one in (*self.news, *self.gone):
            if one.first_us is not None and one.last_us is not None:
                yield one.first_us, one.last_us + 1

    def table(self, since_us: int, until_us: int) -> pl.LazyFrame:
        """The files that have rows in it; the columns of any where none has."""
        inside = [one for one in self.known if _overlaps(one, since_us, until_us)]
        files = [self.folder / one.name for one in inside or self.known[:1]]
        table = scan_files(files)
        return table if inside else table.clear()


@dataclass(frozen=True, slots=True)
class Points:
    """A measurement in the series store; nothing is noted of it."""

    measurement: str
    bucket: str
    tags: tuple[str, ...]
    span_us: Stretch | None

    @property
    def first(self) -> int | None:
        """The oldest time."""
        return self.span_us[0] if self.span_us else None

    @property
    def newest(self) -> int | None:
        """The newest time."""
        return self.span_us[1] if self.span_us else None

    def table(self, since_us: int, until_us: int) -> pl.LazyFrame:
        """The points of the stretch."""
        stretch = since_us / 1_000, until_us / 1_000
        return points_of(self.measurement, self.bucket, self.tags, stretch)


def side_of(output: ReplayOutput, *, is_old: bool) -> Files | Points:
    """One side of an output, as it is now."""
    place = output.place if is_old else output.beside
    if output.kind == POINTS:
        return _points(output, place)
    return _files(output, Path(place), is_old=is_old)


def _points(output: ReplayOutput, place: str) -> Points:
    ends_ms = embedded_store().span_ms(output.bucket, place)
    ends = None if ends_ms is None else (round(ends_ms[0] * 1_000), round(ends_ms[1] * 1_000))
    return Points(place, output.bucket, tuple(output.keys), ends)


def _files(output: ReplayOutput, folder: Path, *, is_old: bool) -> Files:
    before = {one.name: one for one in SeenFile.objects.filter(output=output, is_old=is_old)}
    terms, known, news = terms_of(output), [], []
    for file in committed(folder):
        status, name = file.stat(), str(file.relative_to(folder))
        one = before.get(name)
        if one is None or (one.size, one.mtime_ns) != (status.st_size, status.st_mtime_ns):
            first, last = span(pl.scan_parquet(file), terms) or (None, None)
            facts = {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
            ends = {"first_us": first, "last_us": last}
            one = SeenFile(output=output, is_old=is_old, name=name, **facts, **ends)
            news.append(one)
        else:
            del before[name]
        known.append(one)
    return Files(folder, known, news, list(before.values()))


def _overlaps(one: SeenFile, since_us: int, until_us: int) -> bool:
    first, last = one.first_us, one.last_us
    return first is not None and last is not None and first < until_us and since_us <= last
