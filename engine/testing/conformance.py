"""Conformance suites: whoever writes a connector proves with one call that it keeps its contract.

    check_source(make)                      splits are stable, a position continues exactly there
    check_two_phase_sink(make, read)        invisible until committed, then there exactly once
    check_idempotent_sink(make, read)       there once prepared, and once however often written

`make` builds the connector anew, always on the same place; `read` returns the rows that a reader of
the place sees now, as dicts. The suites raise AssertionError with one sentence.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import count
from typing import TypeVar

import cloudpickle
import polars as pl
from polars.testing import assert_frame_equal

from engine.connectors.contract import Json, Sink, SinkContext, SinkWriter, Source, SplitReader
from engine.elements import Micros

Row = Mapping[str, object]
Read = Callable[[], Sequence[Row]]
Connector = TypeVar("Connector", Source, Sink)

FAR_FUTURE = Micros(2**62)
"""Processing time at which everything that is paced has long been due."""

POLLS = 10_000
"""More polls than a source under test may need: an endless one is a mistake of the test."""


def check_source(make: Callable[[], Source], *, max_rows: int = 7) -> None:
    """Check a bounded, replayable source: read each split whole, and again from each position."""
    source = _shipped(make())
    splits = list(source.splits())
    assert splits == list(_shipped(make()).splits()), "splits differ between two starts"
    assert len(set(splits)) == len(splits), f"ids of splits are not unique: {splits}"
    for split in splits:
        _check_split(source, split, max_rows)


def _check_split(source: Source, split: str, max_rows: int) -> None:
    whole = _read(source, source.open(split, None), 1_000_000)
    reader = source.open(split, None)
    position, done = _json(reader.position), 0
    for _ in range(POLLS):
        rest = _read(source, source.open(split, position), 1_000_000)
        assert_frame_equal(rest, whole.slice(done))
        polled = reader.poll(max_rows, FAR_FUTURE)
        taken = 0 if polled.frame is None else polled.frame.height
        assert taken <= max_rows, f"split '{split}' gave {taken} rows: asked for {max_rows}"
        position, done = _json(reader.position), done + taken
        if polled.finished:
            assert done == whole.height, f"split '{split}' depends on the size of polls"
            reader.close()
            return
    msg = f"split '{split}' does not end: the suite needs a bounded source"
    raise AssertionError(msg)


def _read(source: Source, reader: SplitReader, max_rows: int) -> pl.DataFrame:
    """Read to the end; every frame must have the schema that the source declares."""
    empty = pl.DataFrame(schema=dict(source.schema))
    frames = [empty]
    for _ in range(POLLS):
        polled = reader.poll(max_rows, FAR_FUTURE)
        if polled.frame is not None:
            schema = polled.frame.schema
            assert schema == empty.schema, f"rows are not as declared: {schema}"
            frames.append(polled.frame)
        if polled.finished:
            reader.close()
            return pl.concat(frames)
    msg = "source does not end: the suite needs a bounded one"
    raise AssertionError(msg)


def check_two_phase_sink(make: Callable[[], Sink], read: Read) -> None:
    """Check that rows stay hidden until their commit, and are there exactly once after a crash."""
    with closing(_SinkBench(make, read)) as bench:
        for check in (
            _rows_appear_with_their_commit,
            _a_second_commit_changes_nothing,
            _unprepared_rows_die_with_the_writer,
            _staged_rows_of_no_snapshot_are_dropped,
            _staged_rows_of_the_snapshot_are_committed,
            _several_staged_are_committed_one_by_one,
            _several_staged_are_recovered_together,
            _one_subtask_commits_for_all,
            _nothing_to_commit_is_no_error,
            _a_shadow_writes_elsewhere,
        ):
            check(bench)


def check_idempotent_sink(make: Callable[[], Sink], read: Read) -> None:
    """Check that rows are there once they are prepared, and once only, however often written."""
    with closing(_SinkBench(make, read)) as bench:
        frame = bench.frame()
        for _ in range(2):
            writer = bench.writer()
            writer.write(frame)
            writer.prepare(1)
            bench.expect(frame, "after the same rows were written and prepared")
        _a_shadow_writes_elsewhere(bench)


class _SinkBench:
    """Writers on one place, fresh rows for them, and what a reader should see by now.

    Rows have the columns key, window_end and n; (key, window_end) is unique.
    """

    def __init__(self, make: Callable[[], Sink], read: Read) -> None:
        self.sink = _shipped(make())
        self._read = read
        self._attempts = count(1)
        self._rows = count()
        self._expected: list[Row] = []
        self._writers: list[SinkWriter] = []

    def writer(self, subtask: int = 0, *, shadow: str | None = None) -> SinkWriter:
        """A writer of a new attempt of the same job: those of earlier ones have crashed."""
        sink = self.sink.shadow(shadow) if shadow else self.sink
        context = SinkContext("conformance", f"attempt-{next(self._attempts)}", subtask, 2)
        self._writers.append(sink.open(context))
        return self._writers[-1]

    def close(self) -> None:
        """Release what crashed writers hold; only now, because a crash closes nothing."""
        for writer in self._writers:
            writer.close()

    def frame(self) -> pl.DataFrame:
        """Rows like no other's."""
        at = [next(self._rows) for _ in range(3)]
        end = pl.Series(at, dtype=pl.Int64).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        return pl.DataFrame({"key": ["a", "b", "a"], "window_end": end, "n": at})

    def expect(self, frame: pl.DataFrame | None, when: str) -> None:
        """Assert that a reader sees what it saw before, and these rows if they are new."""
        for row in [] if frame is None else frame.to_dicts():
            if row not in self._expected:
                self._expected.append(row)
        seen = [{name: row[name] for name in ("key", "window_end", "n")} for row in self._read()]
        wanted = sorted(self._expected, key=repr)
        assert sorted(seen, key=repr) == wanted, f"a reader sees other rows {when}: {seen}"


def _rows_appear_with_their_commit(bench: _SinkBench) -> None:
    writer, frame = bench.writer(), bench.frame()
    writer.write(frame)
    bench.expect(None, "before prepare")
    staged = _json(writer.prepare(1))
    bench.expect(None, "between prepare and commit")
    writer.commit(staged)
    bench.expect(frame, "after commit")


def _a_second_commit_changes_nothing(bench: _SinkBench) -> None:
    writer, frame = bench.writer(), bench.frame()
    writer.write(frame)
    staged = _json(writer.prepare(2))
    writer.commit(staged)
    writer.commit(staged)
    bench.expect(frame, "after a second commit")
    bench.writer().recover([staged])
    bench.expect(None, "after a commit that was done before the crash")


def _unprepared_rows_die_with_the_writer(bench: _SinkBench) -> None:
    bench.writer().write(bench.frame())
    bench.writer().recover([])
    bench.expect(None, "after a crash before prepare")


def _staged_rows_of_no_snapshot_are_dropped(bench: _SinkBench) -> None:
    first, frame = bench.writer(), bench.frame()
    first.write(frame)
    first.prepare(3)
    second = bench.writer()
    second.recover([])
    bench.expect(None, "after a crash before the checkpoint was complete")
    second.write(frame)
    second.commit(_json(second.prepare(3)))
    bench.expect(frame, "after the same rows were written again")


def _staged_rows_of_the_snapshot_are_committed(bench: _SinkBench) -> None:
    first, frame, later = bench.writer(), bench.frame(), bench.frame()
    first.write(frame)
    staged = _json(first.prepare(4))
    first.write(later)
    first.prepare(5)
    bench.writer().recover([staged])
    bench.expect(frame, "after a crash between checkpoint and commit")


def _staged_twice(bench: _SinkBench) -> tuple[SinkWriter, list[tuple[pl.DataFrame, Json]]]:
    """A writer with two checkpoints under way, and rows that belong to neither."""
    writer, staged = bench.writer(), []
    for checkpoint_id in (11, 12):
        frame = bench.frame()
        writer.write(frame)
        staged.append((frame, _json(writer.prepare(checkpoint_id))))
    writer.write(bench.frame())
    bench.expect(None, "while two checkpoints are under way")
    return writer, staged


def _several_staged_are_committed_one_by_one(bench: _SinkBench) -> None:
    writer, staged = _staged_twice(bench)
    for frame, committable in staged:
        writer.commit(committable)
        bench.expect(frame, "after the older of two checkpoints was committed, then the newer")
    bench.writer().recover([])


def _several_staged_are_recovered_together(bench: _SinkBench) -> None:
    writer, ((older, first), (newer, second)) = _staged_twice(bench)
    writer.commit(first)
    bench.expect(older, "after the older of two checkpoints was committed")
    bench.writer().recover([first, second])
    bench.expect(newer, "after a crash before the newer was committed, but not before the older")


def _one_subtask_commits_for_all(bench: _SinkBench) -> None:
    frames = [bench.frame(), bench.frame()]
    staged = []
    for subtask, frame in enumerate(frames):
        writer = bench.writer(subtask)
        writer.write(frame)
        staged.append(_json(writer.prepare(6)))
    bench.writer().recover(staged)
    bench.expect(pl.concat(frames), "after subtask 0 committed for both")


def _nothing_to_commit_is_no_error(bench: _SinkBench) -> None:
    writer = bench.writer()
    staged = _json(writer.prepare(7))
    if staged is not None:
        writer.commit(staged)
    bench.expect(None, "after a checkpoint without rows")


def _a_shadow_writes_elsewhere(bench: _SinkBench) -> None:
    writer = bench.writer(shadow="r-1")
    writer.write(bench.frame())
    staged = _json(writer.prepare(8))
    if staged is not None:
        writer.commit(staged)
    bench.expect(None, "after its shadow wrote rows")


def _shipped(connector: Connector) -> Connector:
    """The connector as a worker gets it: pickled and unpickled."""
    copy: Connector = pickle.loads(cloudpickle.dumps(connector))  # type: ignore[no-untyped-call]  # noqa: S301
    return copy


def _json(value: Json) -> Json:
    """The value as a snapshot gives it back."""
    back: Json = json.loads(json.dumps(value))
    return back
