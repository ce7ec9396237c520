"""JSON lines that are written: exactly once, and read again as they were."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
from polars.testing import assert_frame_equal

from engine.connectors.contract import SinkContext
from engine.connectors.json_lines import JsonLinesSink, JsonLinesSource
from engine.elements import Micros
from engine.testing.conformance import Row, check_two_phase_sink


def test_rows_are_there_exactly_once(tmp_path: Path) -> None:
    def read() -> Sequence[Row]:
        texts = [file.read_text() for file in sorted(tmp_path.glob("out/[!.]*.jsonl"))]
        rows = [json.loads(line) for text in texts for line in text.splitlines()]
        return [row | {"window_end": datetime.fromisoformat(row["window_end"])} for row in rows]

    check_two_phase_sink(lambda: JsonLinesSink(tmp_path / "out"), read)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 1, 12, 30, 0, 123_456, tzinfo=UTC)
    frame = pl.DataFrame(
        {
            "text": ['é "quoted"\n', None],
            "at": [moment, None],
            "value": [0.1, -1e300],
            "n": [2**63 - 1, -(2**63)],
            "tags": [["a", "b"], []],
        }
    )
    writer = JsonLinesSink(tmp_path).open(SinkContext("job", "attempt", 0, 1))
    writer.write(frame)
    writer.commit(writer.prepare(1))
    writer.close()
    source = JsonLinesSource(tmp_path / "*.jsonl", schema=frame.schema)
    [split] = source.splits()
    reader = source.open(split, None)
    found = reader.poll(10, Micros(0)).frame
    reader.close()
    assert found is not None
    assert_frame_equal(found, frame)
