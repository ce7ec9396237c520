"""Parquet files when the process dies at any single step of writing, staging or committing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from engine.connectors.contract import Json, SinkContext
from engine.connectors.parquet_files import ParquetFilesSink

CHUNKS = [pl.DataFrame({"key": ["a", "b"], "n": [n, n + 1]}) for n in range(0, 6, 2)]


class Died(BaseException):
    """The process is gone: no handler of the sink may run on."""


class Steps:
    """Counts steps that touch the disk, and dies once, before or in the midst of one."""

    def __init__(self, fatal: int) -> None:
        self.done = 0
        self.fatal = fatal

    def take(self) -> bool:
        """Whether this is the fatal step."""
        self.done += 1
        return self.done == self.fatal


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Steps]]:
    def arrange(fatal: int) -> Steps:
        monkeypatch.undo()
        steps = Steps(fatal)

        def breaking(step: Callable[..., Any]) -> Callable[..., Any]:
            def broken(*args: Any, **kwargs: Any) -> Any:
                if steps.take():
                    raise Died
                return step(*args, **kwargs)

            return broken

        write = pl.DataFrame.write_parquet

        def torn(frame: pl.DataFrame, path: Path, **kwargs: Any) -> None:
            fatal = steps.take()
            write(frame, path, **kwargs)
            if fatal:
                path.write_bytes(path.read_bytes()[:10])
                raise Died

        monkeypatch.setattr(pl.DataFrame, "write_parquet", torn)
        monkeypatch.setattr(Path, "replace", breaking(Path.replace))
        monkeypatch.setattr(Path, "mkdir", breaking(Path.mkdir))
        monkeypatch.setattr(Path, "unlink", breaking(Path.unlink))
        monkeypatch.setattr(os, "fsync", breaking(os.fsync))
        return steps

    yield arrange
    monkeypatch.undo()


def run(folder: Path) -> None:
    """Write all chunks, a checkpoint after each, through however many deaths it takes."""
    done, staged = 0, list[Json]()  # what the latest complete snapshot holds
    sink = ParquetFilesSink(folder, bucket="key")
    for attempt in count():
        writer = sink.open(SinkContext("job", str(attempt), 0, 1))
        try:
            writer.recover(staged)
            for number in range(done, len(CHUNKS)):
                writer.write(CHUNKS[number])
                committable = writer.prepare(number)
                done, staged = number + 1, [committable]
                writer.commit(committable)
            return
        except Died:
            continue


def test_every_row_is_there_once_wherever_the_process_dies(
    tmp_path: Path, dying: Callable[[int], Steps]
) -> None:
    expected = pl.concat(CHUNKS).sort("n")
    for fatal in count(1):
        folder = tmp_path / str(fatal)
        steps = dying(fatal)
        run(folder)
        files = sorted(folder.rglob("[!.]*.parquet"))
        assert pl.concat(map(pl.read_parquet, files)).sort("n").equals(expected), f"step {fatal}"
        assert list(folder.rglob(".*")) == [], f"step {fatal}"
        if steps.done < fatal:
            assert fatal > 20, "the steps are not counted"
            return
