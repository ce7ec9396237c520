"""Parquet files: exactly once, bucketed, and never half visible."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from engine.connectors.bucketed_files import ROLL_ROWS, BucketedFilesWriter
from engine.connectors.contract import SinkContext
from engine.connectors.parquet_files import ParquetFilesSink
from engine.errors import GraphError, SinkError
from engine.testing.conformance import check_two_phase_sink

MONTH = pl.col("at").dt.strftime("%Y-%m")


def read(folder: Path) -> list[dict[str, object]]:
    files = sorted(folder.rglob("[!.]*.parquet"))
    return [row for file in files for row in pl.read_parquet(file).to_dicts()]


def hidden(folder: Path) -> list[Path]:
    return sorted(folder.rglob(".*"))


def writer(sink: ParquetFilesSink, attempt: str = "1", job: str = "j") -> BucketedFilesWriter:
    return sink.open(SinkContext(job, attempt, 0, 1))


def rows(*months: int) -> pl.DataFrame:
    at = [datetime(2013, month, 1, tzinfo=UTC) for month in months]
    return pl.DataFrame({"at": at, "n": months})


def test_is_exactly_once(tmp_path: Path) -> None:
    check_two_phase_sink(lambda: ParquetFilesSink(tmp_path / "out"), lambda: read(tmp_path / "out"))


@pytest.mark.parametrize("bucket", ["key", pl.col("n") % 2])
def test_is_exactly_once_in_buckets(tmp_path: Path, bucket: str | pl.Expr) -> None:
    out = tmp_path / "out"
    check_two_phase_sink(lambda: ParquetFilesSink(out, bucket=bucket), lambda: read(out))


def test_rows_go_to_the_folder_of_their_bucket(tmp_path: Path) -> None:
    write = writer(ParquetFilesSink(tmp_path, bucket=MONTH))
    write.write(rows(1, 2, 1))
    write.write(rows(2))
    write.commit(write.prepare(1))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["2013-01", "2013-02"]
    assert len(read(tmp_path / "2013-01")) == 2
    assert len(list((tmp_path / "2013-02").iterdir())) == 1


@pytest.mark.parametrize("value", ["..", ".", "", "a/b", ".hidden", None, "é"])
def test_no_value_leads_out_of_the_folder_or_hides_rows(tmp_path: Path, value: str | None) -> None:
    write = writer(ParquetFilesSink(tmp_path / "out", bucket="key"))
    write.write(pl.DataFrame({"key": [value, "plain"]}, schema={"key": pl.String}))
    write.commit(write.prepare(1))
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert {row["key"] for row in read(tmp_path / "out")} == {value, "plain"}
    assert len([p for p in (tmp_path / "out").iterdir() if p.is_dir()]) == 2


def test_reserved_columns_stay_inside_the_engine(tmp_path: Path) -> None:
    write = writer(ParquetFilesSink(tmp_path))
    write.write(pl.DataFrame({"n": [1], "event_time": [1], "key_group": [1]}))
    write.write(pl.DataFrame({"n": [2], "event_time": [2], "row_watermark": [3], "key_group": [1]}))
    write.commit(write.prepare(1))
    assert read(tmp_path) == [{"n": 1}, {"n": 2}]


def test_many_rows_leave_memory_before_the_checkpoint(tmp_path: Path) -> None:
    write = writer(ParquetFilesSink(tmp_path))
    many = pl.DataFrame({"n": pl.int_range(ROLL_ROWS // 2, eager=True)})
    write.write(many)
    assert hidden(tmp_path) == []
    write.write(many)
    assert [p.suffix for p in hidden(tmp_path)] == [".inprogress"]
    write.write(many)
    write.commit(write.prepare(1))
    files = [pl.read_parquet(file) for file in sorted(tmp_path.rglob("*.parquet"))]
    assert [file.height for file in files] == [ROLL_ROWS, ROLL_ROWS // 2]
    assert pl.concat(files)["n"].sum() == 3 * many["n"].sum()


def test_a_restart_sweeps_hidden_files_of_its_own_job_only(tmp_path: Path) -> None:
    sink = ParquetFilesSink(tmp_path)
    for job in ("mine", "other"):
        crashed = writer(sink, job=job)
        crashed.write(rows(1))
        crashed.prepare(1)
        crashed.write(pl.DataFrame({"n": pl.int_range(ROLL_ROWS, eager=True)}))
    writer(sink, attempt="2", job="mine").recover([])
    assert {p.name.split("-")[0] for p in hidden(tmp_path)} == {".other"}


def test_an_empty_frame_makes_no_file(tmp_path: Path) -> None:
    write = writer(ParquetFilesSink(tmp_path))
    write.write(rows().head(0))
    assert write.prepare(1) is None
    assert list(tmp_path.iterdir()) == []


def test_a_staged_file_that_someone_took_is_reported(tmp_path: Path) -> None:
    write = writer(ParquetFilesSink(tmp_path))
    write.write(rows(1))
    staged = write.prepare(1)
    for path in hidden(tmp_path):
        path.unlink()
    with pytest.raises(SinkError, match=r"staged file is gone before its commit: .*another job"):
        write.commit(staged)


def test_files_that_were_moved_after_their_commit_do_not_stop_a_restore(tmp_path: Path) -> None:
    sink = ParquetFilesSink(tmp_path)
    first = writer(sink)
    first.write(rows(1))
    staged = first.prepare(1)
    first.commit(staged)
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    writer(sink, attempt="2").recover([staged])
    assert read(tmp_path) == []


def test_a_committable_of_another_sink_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="not one of a parquet sink"):
        writer(ParquetFilesSink(tmp_path)).recover([{"transaction": 7}])


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, not a folder")
    write = writer(ParquetFilesSink(tmp_path / "out"))
    write.write(rows(1))
    with pytest.raises(SinkError, match=r"parquet folder cannot be written: .*out"):
        write.prepare(1)


def test_a_bucket_of_a_missing_column_is_found_when_the_graph_is_built(tmp_path: Path) -> None:
    schema = {"n": pl.Int64()}
    ParquetFilesSink(tmp_path).check(schema)
    with pytest.raises(GraphError, match="needs column 'at': the stream has n"):
        ParquetFilesSink(tmp_path, bucket=MONTH).check(schema)


def test_a_shadow_stands_beside_its_target(tmp_path: Path) -> None:
    assert ParquetFilesSink(tmp_path / "daily").shadow("r-1").path == tmp_path / "daily@r-1"
