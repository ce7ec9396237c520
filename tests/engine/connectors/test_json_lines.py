"""JSON lines: what a file may look like, positions in it, and what happens to bad lines."""

from __future__ import annotations

import gzip
import json
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.connectors.contract import Json, Polled
from engine.connectors.json_lines import JsonLinesSource
from engine.connectors.line_files import BLOCK_BYTES, BadLines
from engine.elements import Micros
from engine.errors import ConfigError, DataError, SourceError
from engine.operators.sources.source import SourceOperator, SourceRun
from engine.testing.conformance import check_source

NOW = Micros(0)
N = {"n": pl.Int64}


def source(path: Path, content: bytes, bad_lines: BadLines = "fail") -> JsonLinesSource:
    path.write_bytes(content)
    return JsonLinesSource(path, schema=N, bad_lines=bad_lines)


def numbers(source: JsonLinesSource, max_rows: int = 1_000) -> list[int | None]:
    """Column n of the only file."""
    rows: list[int | None] = []
    with closing(source.open(source.splits()[0], None)) as reader:
        polled = Polled()
        while not polled.finished:
            polled = reader.poll(max_rows, NOW)
            rows += column(polled)
    return rows


def column(polled: Polled) -> list[int | None]:
    return [] if polled.frame is None else polled.frame["n"].to_list()


def poll_once(
    source: JsonLinesSource, split: str, position: Json = None, max_rows: int = 9
) -> tuple[Polled, Json]:
    """The next rows, and the position behind them."""
    with closing(source.open(split, position)) as reader:
        return reader.poll(max_rows, NOW), reader.position


@pytest.mark.parametrize(
    "content",
    [
        b'{"n":1}\n{"n":2}\n',
        b'{"n":1}\n{"n":2}',
        b'{"n":1}\r\n{"n":2}\r\n',
        b'\xef\xbb\xbf{"n":1}\n{"n":2}\n',
        b'\n{"n":1}\n\n \t\n{"n":2}\n\n',
        b'{"more":[1,{"n":7}],"n":1}\n{"n":2}\n',
    ],
)
def test_a_file_may_end_begin_and_wrap_its_lines_as_files_do(
    tmp_path: Path, content: bytes
) -> None:
    lines = source(tmp_path / "a.jsonl", content)
    assert numbers(lines) == numbers(lines, max_rows=1) == [1, 2]
    check_source(lambda: lines, max_rows=1)


def test_a_field_that_is_missing_or_null_is_null(tmp_path: Path) -> None:
    assert numbers(source(tmp_path / "a.jsonl", b'{}\n{"n":null}\n{"n":3}\n')) == [None, None, 3]


def test_times_nested_objects_and_arrays_have_the_declared_types(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"t":"2026-01-01T02:00:00+02:00","s":{"x":1},"l":[1.5]}\n')
    schema = {
        "t": pl.Datetime("us", "UTC"),
        "s": pl.Struct({"x": pl.Int64}),
        "l": pl.List(pl.Float64),
    }
    lines = JsonLinesSource(path, schema=schema)
    frame = poll_once(lines, "a.jsonl")[0].frame
    assert frame is not None
    assert frame.schema == lines.schema
    assert frame["t"].dt.to_string("%H:%M %Z").to_list() == ["00:00 UTC"]


def test_each_file_of_a_pattern_is_a_split_and_its_folder_may_move(tmp_path: Path) -> None:
    for name in ("one/b.jsonl", "one/deep/a.jsonl", "one/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f'{{"n":1}}\n{{"n":{len(name)}}}\n')
    before = JsonLinesSource(tmp_path / "one/**/*.jsonl", schema=N)
    assert before.splits() == ["b.jsonl", "deep/a.jsonl"]
    check_source(lambda: before, max_rows=1)
    _, position = poll_once(before, "deep/a.jsonl", max_rows=1)
    (tmp_path / "one").rename(tmp_path / "two")
    after = JsonLinesSource(tmp_path / "two/**/*.jsonl", schema=N)
    polled, _ = poll_once(after, "deep/a.jsonl", position)
    assert column(polled) == [len("one/deep/a.jsonl")]


def test_a_packed_file_is_read_and_restored_like_a_plain_one(tmp_path: Path) -> None:
    content = b"".join(b'{"n":%d}\n' % n for n in range(20))
    packed = source(tmp_path / "a.jsonl.gz", gzip.compress(content))
    assert numbers(packed) == list(range(20))
    check_source(lambda: packed)


def test_a_packed_file_that_is_damaged_is_told_with_its_name(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"n":1}\n{"n":2}\n' * 1_000)
    lines = source(tmp_path / "a.jsonl.gz", packed[:20] + bytes(range(255, 0, -1)))
    with pytest.raises(SourceError, match=r"file cannot be read: .*a.jsonl.gz: Error -3"):
        numbers(lines)


def test_the_folder_that_we_are_in_is_no_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run[1]"
    folder.mkdir()
    monkeypatch.chdir(folder)
    source(folder / "a.jsonl", b'{"n":1}\n')
    for path in ("a.jsonl", "*.jsonl"):
        assert numbers(JsonLinesSource(path, schema=N)) == [1]


def test_lines_longer_and_files_larger_than_a_block_are_read_whole(tmp_path: Path) -> None:
    long = b'{"n":1,"text":"%s"}\n' % (b"x" * (2 * BLOCK_BYTES))
    short = b'{"n":2}\n' * 10
    lines = source(tmp_path / "a.jsonl", long + short + long)
    assert numbers(lines, max_rows=4) == [1, *([2] * 10), 1]


def test_the_next_line_is_the_position_and_lines_may_be_appended(tmp_path: Path) -> None:
    lines = source(tmp_path / "a.jsonl", b'{"n":1}\n\n{"n":2}\n')
    _, position = poll_once(lines, "a.jsonl", max_rows=2)
    assert position == {"byte": 9, "line": 2}
    with (tmp_path / "a.jsonl").open("ab") as file:
        file.write(b'{"n":3}\n')
    assert column(poll_once(lines, "a.jsonl", position)[0]) == [2, 3]


BAD = b'{"n":1}\n{"n":2}\n{"n":"three"}\n{"n":4}\nnonsense\n[6]\n{"n":7}'


def test_a_bad_line_fails_the_job_with_file_number_and_text(tmp_path: Path) -> None:
    lines = source(tmp_path / "a.jsonl", BAD)
    for max_rows in (1, 2, 100):
        with pytest.raises(DataError) as raised:
            numbers(lines, max_rows)
        assert str(raised.value) == (
            f"line 3 of {tmp_path / 'a.jsonl'} is not a JSON object of the declared columns: "
            'cannot parse \'three\' (string) as Int64: got {"n":"three"}; mend the file, or pass '
            "bad_lines='skip'"
        )


def test_bad_lines_are_left_out_and_counted_when_asked(tmp_path: Path) -> None:
    lines = source(tmp_path / "a.jsonl", BAD, bad_lines="skip")
    assert numbers(lines) == numbers(lines, max_rows=1) == [1, 2, 4, 7]
    check_source(lambda: lines, max_rows=2)
    run = SourceRun(SourceOperator(lines), 0, 1, {})
    while not run.ended:
        run.poll(Micros(run.again_at), 2, 0)
    assert run.skipped == 3


def test_a_long_bad_line_is_shown_shortened(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        numbers(source(tmp_path / "a.jsonl", b'{"n":"' + b"x" * 10_000 + b'"}'))
    assert len(str(raised.value)) < 600


def test_a_file_that_became_shorter_is_refused(tmp_path: Path) -> None:
    lines = source(tmp_path / "a.jsonl", b'{"n":1}\n')
    with pytest.raises(SourceError, match="shorter than the stored position"):
        lines.open("a.jsonl", {"byte": 16, "line": 2})


def test_positions_of_other_sources_and_missing_files_are_refused(tmp_path: Path) -> None:
    lines = source(tmp_path / "a.jsonl", b"")
    with pytest.raises(SourceError, match="position of another kind of source: got 7"):
        lines.open("a.jsonl", 7)
    with pytest.raises(SourceError, match="no file matches"):
        JsonLinesSource(tmp_path / "b*.jsonl", schema=N).splits()
    with pytest.raises(SourceError, match="file cannot be read"):
        lines.open("b.jsonl", None)


def test_a_source_needs_columns_and_a_known_policy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no columns"):
        JsonLinesSource(tmp_path, schema={})
    with pytest.raises(ConfigError, match="got 'ignore'; use fail or skip"):
        JsonLinesSource(tmp_path, schema=N, bad_lines="ignore")  # type: ignore[arg-type]


Line = tuple[bytes, list[int]]
good: st.SearchStrategy[Line] = st.integers(-(2**63), 2**63 - 1).map(
    lambda n: (json.dumps({"n": n}).encode(), [n])
)
blank: st.SearchStrategy[Line] = st.sampled_from([b"", b" ", b"\r"]).map(lambda line: (line, []))
bad: st.SearchStrategy[Line] = st.sampled_from(
    [b"{", b'{"n":1.5}', b'{"n":1}}', b"7", b'"\xff"']
).map(lambda line: (line, []))


@settings(max_examples=40, deadline=None)
@given(st.lists(good | blank | bad, max_size=12), st.integers(1, 5), st.booleans())
def test_any_file_gives_its_good_lines_however_it_is_polled(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[Line],
    max_rows: int,
    ends: bool,
) -> None:
    content = b"\n".join(line for line, _ in lines) + (b"\n" if ends else b"")
    read = source(tmp_path_factory.mktemp("lines") / "a.jsonl", content, bad_lines="skip")
    assert numbers(read, max_rows) == [n for _, rows in lines for n in rows]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.Time, pl.Duration("us"), pl.Binary])
def test_a_type_that_the_parser_does_not_know_is_refused(dtype: pl.DataType) -> None:
    with pytest.raises(ConfigError, match=r"column 'n' of 'a.jsonl' cannot be read from JSON: its"):
        JsonLinesSource("a.jsonl", schema={"n": dtype})
