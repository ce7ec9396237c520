"""Playback: order, pace, positions, and clear refusals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from engine.connectors.playback import PlaybackSource
from engine.elements import Micros
from engine.errors import ConfigError, SourceError
from engine.testing.conformance import check_source

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)
AT = Micros(int(ANCHOR.timestamp()) * 1_000_000)
SECOND = 1_000_000


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Five rows, out of order in the file: a at 0, 60, 60 and 180 s, b at 120 s."""
    seconds = [60, 0, 180, 120, 60]
    rows = {
        "key": ["a", "a", "a", "b", "a"],
        "known": [NOON + timedelta(seconds=s) for s in seconds],
        "n": [1, 2, 3, 4, 5],
    }
    path = tmp_path / "recording.parquet"
    pl.DataFrame(rows).write_parquet(path)
    return path


def play(recording: Path, **settings: object) -> PlaybackSource:
    settings = {"order": "known", "split_by": "key", "speed": 60, "anchor": ANCHOR} | settings
    return PlaybackSource(recording, **settings)  # type: ignore[arg-type]


def test_replays_from_every_position(recording: Path) -> None:
    check_source(lambda: play(recording, bounded=True), max_rows=2)
    check_source(lambda: play(recording, bounded=True, speed=None, split_by=()), max_rows=3)


def test_rows_come_in_their_order_and_equal_ones_as_in_the_file(recording: Path) -> None:
    frame = play(recording, speed=None).open("a", None).poll(10, AT).frame
    assert frame is not None
    assert frame["n"].to_list() == [2, 1, 5, 3]


def test_a_row_is_readable_at_its_moment_and_not_a_microsecond_before(recording: Path) -> None:
    reader = play(recording).open("a", None)
    first = reader.poll(10, AT)
    assert first.frame is not None
    assert first.frame["n"].to_list() == [2]
    early = reader.poll(10, Micros(AT + SECOND - 1))
    assert early.frame is None
    due = reader.poll(10, Micros(AT + SECOND)).frame
    assert due is not None
    assert due["n"].to_list() == [1, 5]


def test_an_early_poll_says_when_the_next_row_comes(recording: Path) -> None:
    reader = play(recording).open("b", None)
    assert reader.poll(10, AT).retry_at == AT + 2 * SECOND


def test_the_pace_of_all_splits_starts_with_the_first_row_of_the_table(recording: Path) -> None:
    reader = play(recording).open("b", None)
    assert reader.poll(10, Micros(AT + 2 * SECOND - 1)).frame is None
    assert reader.poll(10, Micros(AT + 2 * SECOND)).frame is not None


def test_a_reader_that_is_behind_reads_at_once_and_knows_how_much_waits(recording: Path) -> None:
    polled = play(recording).open("a", None).poll(1, Micros(AT + 60 * SECOND))
    assert polled.frame is not None
    assert polled.pending_rows == 3


def test_a_resumed_log_has_gone_on_while_nobody_read(recording: Path) -> None:
    reader = play(recording).open("a", None)
    reader.poll(1, AT)
    later = play(recording, anchor=ANCHOR + timedelta(days=1)).open("a", reader.position)
    assert later.poll(10, Micros(AT + 3 * SECOND)).frame is not None


def test_an_open_stream_stays_after_its_last_row(recording: Path) -> None:
    reader = play(recording, speed=None).open("b", None)
    assert reader.poll(10, AT).frame is not None
    end = reader.poll(10, AT)
    assert not end.finished
    assert end.retry_at is not None
    assert end.retry_at > AT


def test_splits_by_two_columns(recording: Path) -> None:
    source = play(recording, split_by=("key", "n"))
    assert source.splits() == ["a/1", "a/2", "a/3", "a/5", "b/4"]


def test_columns_are_computed_before_rows_are_ordered(recording: Path) -> None:
    backwards = (pl.lit(NOON) - (pl.col("known") - NOON)).alias("back")
    source = play(recording, columns=["n", backwards], order="back", split_by=(), speed=None)
    frame = source.open("all", None).poll(10, AT).frame
    assert frame is not None
    assert frame["n"].to_list() == [3, 4, 1, 5, 2]


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"recording does not exist: .*nothing\.parquet"):
        play(tmp_path / "nothing.parquet")


def test_a_missing_column_is_refused_with_the_columns_there_are(recording: Path) -> None:
    with pytest.raises(ConfigError, match=r"no column 'when': .*it has key, known, n"):
        play(recording, order="when")


def test_an_expression_over_a_missing_column_is_refused(recording: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be played"):
        play(recording, columns=[pl.col("nowhere")])


def test_only_times_can_order(recording: Path) -> None:
    with pytest.raises(ConfigError, match="column 'n' cannot order a recording: got Int64"):
        play(recording, order="n")


@pytest.mark.parametrize("speed", [0, -1, float("inf"), float("nan")])
def test_a_speed_that_is_none_is_refused(recording: Path, speed: float) -> None:
    with pytest.raises(ConfigError, match="speed must be positive"):
        play(recording, speed=speed)


def test_an_anchor_without_a_zone_is_refused(recording: Path) -> None:
    with pytest.raises(ConfigError, match="anchor has no time zone"):
        play(recording, anchor=datetime(2026, 1, 1))


def test_a_row_without_order_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nulls.parquet"
    pl.DataFrame({"known": [NOON, None]}).write_parquet(path)
    with pytest.raises(SourceError, match="got 1 nulls"):
        play(path, split_by=()).open("all", None)


def test_a_position_past_the_end_means_that_the_file_was_changed(recording: Path) -> None:
    with pytest.raises(SourceError, match="got row 5 of 4"):
        play(recording).open("a", {"row": 5, "anchor_us": 0})


def test_a_split_that_is_gone_is_named(recording: Path) -> None:
    with pytest.raises(SourceError, match="split 'c' is not in the file"):
        play(recording).open("c", None)


@pytest.mark.parametrize("position", [7, {"row": -1, "anchor_us": 0}, {"offset": 1}])
def test_a_position_of_another_source_is_refused(recording: Path, position: object) -> None:
    with pytest.raises(SourceError, match="position of another kind of source"):
        play(recording).open("a", position)  # type: ignore[arg-type]
