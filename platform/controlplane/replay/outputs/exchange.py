"""The exchange of outputs: what the replay has written takes the place of what it corrects.

    before    daily/          rows of the old version, from all time
              daily@r-7/      rows of the new version, since the savepoint
    swap      daily/          old rows up to the savepoint, new ones since then
              daily@r-7.old/  the old rows that gave way
    restore   daily/          as it was; what the new version wrote there goes to  daily@r-7.new/

Guarantee  nothing is deleted. Each step is one rename or link, and all can be done again: who is
           killed between two of them finds the same end.
Needs      that nobody writes to the folders meanwhile: both runs have ended. Readers may see the
           folder between two steps.
Units      `since` is the event time of the savepoint, µs: results of windows that end after it are
           the ones that the replay has computed again.
Errors     OutputUnreadable when a folder cannot be read or written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from controlplane.replay.comparison.compare import AT, Terms, event_time
from controlplane.replay.outputs.tables import OutputUnreadable, committed

OLD, NEW = ".old", ".new"


def swap(target: Path, beside: Path, terms: Terms, since_us: int) -> None:
    """Put the replay's rows in the place of those that it corrects."""
    with _told(target):
        ours = {_relative(file, beside) for file in committed(beside)}
        for file in committed(target):
            name = _relative(file, target)
            if name not in ours:
                _give_way(file, _sibling(beside, OLD) / name, terms, since_us)
        for name in sorted(ours):
            _link(beside / name, target / name)


def restore(target: Path, beside: Path, runs: Sequence[str]) -> None:
    """Put the old rows back; what the new version's runs (by engine's id) wrote gives way."""
    with _told(target):
        for file in committed(target):
            if file.name.startswith(tuple(runs)):
                _move(file, _sibling(beside, NEW) / _relative(file, target))
        kept = _sibling(beside, OLD)
        for file in committed(kept):
            _move(file, target / _relative(file, kept))


def _give_way(file: Path, kept: Path, terms: Terms, since_us: int) -> None:
    """Take the rows since then out of a file of the old version; the whole file is kept."""
    rows = pl.read_parquet(file)
    stays = rows.with_columns(event_time(terms)).filter(pl.col(AT) < since_us).drop(AT)
    if stays.height == rows.height:
        return
    if stays.is_empty():
        _move(file, kept)
        return
    # Linked before it is replaced: at no moment is the whole file nowhere.
    _link(file, kept)
    shorter = file.with_name(f".{file.name}.shorter")
    stays.write_parquet(shorter, compression="zstd")
    _synced(shorter)
    shorter.replace(file)


def _link(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if not to.exists():
        to.hardlink_to(file)


def _move(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    file.replace(to)


def _synced(file: Path) -> None:
    with file.open("rb") as written:
        os.fsync(written.fileno())


def _sibling(beside: Path, ending: str) -> Path:
    return beside.with_name(beside.name + ending)


def _relative(file: Path, folder: Path) -> str:
    return str(file.relative_to(folder))


@contextmanager
def _told(target: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        msg = f"output {target} cannot be exchanged: {str(error).strip().splitlines()[0]}"
        raise OutputUnreadable(msg) from error
