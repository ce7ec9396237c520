"""The exchange of outputs, and back: killed at any step, it comes to the same end."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from controlplane.replay.comparison.compare import Terms
from controlplane.replay.outputs import exchange
from controlplane.replay.outputs.tables import OutputUnreadable, committed, scan_files

TERMS = Terms(("key",), "window_end")
SINCE = 30
OLD_RUN, REPLAY_RUN, NEW_RUN = "a" * 32, "b" * 32, "c" * 32


class Killed(BaseException):
    """The worker is gone."""


def write(folder: Path, run: str, number: int, ends: list[int], version: int) -> None:
    name = folder / "2013-01" / f"{run}-0-{number}.parquet"
    name.parent.mkdir(parents=True, exist_ok=True)
    time = pl.Series("window_end", ends).cast(pl.Datetime("us", "UTC"))
    pl.DataFrame({"key": ["k"] * len(ends), "window_end": time, "v": version}).write_parquet(name)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Old rows of ten windows, of which the replay has corrected those that end after 30."""
    target, beside = tmp_path / "daily", tmp_path / "daily@r-7"
    write(target, OLD_RUN, 1, [10, 20], 1)
    write(target, OLD_RUN, 2, [30, 31, 40], 1)
    write(target, OLD_RUN, 3, [50, 60], 1)
    write(beside, REPLAY_RUN, 1, [31, 40, 50], 2)
    write(beside, REPLAY_RUN, 2, [60, 70], 2)
    (target / "2013-01" / f".{OLD_RUN}-0-4.inprogress").write_bytes(b"torn")
    return target, beside


def rows(folder: Path) -> list[tuple[int, int]]:
    found = scan_files(committed(folder)).collect()
    ends = found["window_end"].dt.epoch("us").to_list()
    return sorted(zip(ends, found["v"].to_list(), strict=True))


BEFORE = [(10, 1), (20, 1), (30, 1), (31, 1), (40, 1), (50, 1), (60, 1)]
AFTER = [(10, 1), (20, 1), (30, 1), (31, 2), (40, 2), (50, 2), (60, 2), (70, 2)]


def test_each_window_is_there_once_from_the_version_that_counts(folders):
    target, beside = folders
    exchange.swap(target, beside, TERMS, SINCE)
    assert rows(target) == AFTER
    assert rows(beside) == [(31, 2), (40, 2), (50, 2), (60, 2), (70, 2)]

    write(target, NEW_RUN, 1, [80], 2)
    exchange.restore(target, beside, [REPLAY_RUN, NEW_RUN])
    assert rows(target) == BEFORE
    assert rows(beside.with_name("daily@r-7.new")) == [*AFTER[3:], (80, 2)]


def test_what_was_not_exchanged_is_restored_as_it_is(folders):
    target, beside = folders
    exchange.restore(target, beside, [REPLAY_RUN, NEW_RUN])
    assert rows(target) == BEFORE


@pytest.mark.parametrize("call", ["link", "replace"])
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_step_changes_nothing(folders, monkeypatch, call, after):
    target, beside = folders
    steps = {
        "swap": (lambda: exchange.swap(target, beside, TERMS, SINCE), AFTER),
        "restore": (lambda: exchange.restore(target, beside, [REPLAY_RUN]), BEFORE),
    }
    kills = 0
    for step, wanted in steps.values():
        for number in range(20):
            with monkeypatch.context() as patched:
                patched.setattr(os, call, _killing(getattr(os, call), number, after))
                try:
                    step()
                except Killed:
                    kills += 1
                    continue
            break
        assert rows(target) == wanted
    assert kills >= 2


def _killing(real, number: int, after: bool):
    count = iter(range(number))

    def call(*args: object) -> None:
        last = next(count, None) is None
        if last and not after:
            raise Killed
        real(*args)
        if last:
            raise Killed

    return call if number < 3 else real


def test_a_torn_file_is_told_and_nothing_is_lost(folders):
    target, beside = folders
    (target / "2013-01" / "torn.parquet").write_bytes(b"no parquet")
    with pytest.raises(OutputUnreadable, match="cannot be exchanged"):
        exchange.swap(target, beside, TERMS, SINCE)
    (target / "2013-01" / "torn.parquet").unlink()
    exchange.restore(target, beside, [REPLAY_RUN])
    assert rows(target) == BEFORE
