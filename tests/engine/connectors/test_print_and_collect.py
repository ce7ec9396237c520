"""The two sinks for a first look: every row is there, at least once."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from engine.connectors.collect import CollectSink
from engine.connectors.contract import SinkContext
from engine.connectors.print import PrintSink
from engine.errors import SinkError
from engine.testing.conformance import check_idempotent_sink

ROWS = pl.DataFrame({"key": ["a", "b"], "n": [1, None], "event_time": [1, 2], "key_group": [1, 2]})


def context(subtask: int = 0, attempt: str = "1") -> SinkContext:
    return SinkContext("job", attempt, subtask, 2)


def read(folder: Path) -> list[dict[str, object]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_printed_rows_say_who_printed_them(capsys: pytest.CaptureFixture[str]) -> None:
    writer = PrintSink().open(context(1))
    writer.write(ROWS)
    writer.prepare(1)
    assert capsys.readouterr().out == '1> {"key":"a","n":1}\n1> {"key":"b","n":null}\n'


def test_a_shadow_is_told_apart_by_its_label(capsys: pytest.CaptureFixture[str]) -> None:
    PrintSink("daily").shadow("r-1").open(context()).write(ROWS.head(1))
    assert capsys.readouterr().out.startswith("daily@r-1:0> ")


def test_collected_rows_are_on_disk_after_prepare(tmp_path: Path) -> None:
    for subtask in (0, 1):
        writer = CollectSink(tmp_path / "out").open(context(subtask))
        writer.write(ROWS)
        writer.prepare(1)
        writer.close()
    assert read(tmp_path / "out") == [{"key": "a", "n": 1}, {"key": "b", "n": None}] * 2


def test_a_restart_may_repeat_rows_and_loses_none(tmp_path: Path) -> None:
    for attempt in ("1", "2"):
        writer = CollectSink(tmp_path).open(context(attempt=attempt))
        writer.write(ROWS.head(1))
        writer.prepare(1)
        writer.close()
    assert read(tmp_path) == [{"key": "a", "n": 1}] * 2


def test_the_suite_for_idempotent_sinks_tells_that_this_one_is_not(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="a reader sees other rows"):
        check_idempotent_sink(lambda: CollectSink(tmp_path), lambda: read(tmp_path))


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(SinkError, match=r"file cannot be opened: .*out"):
        CollectSink(tmp_path / "out").open(context())
