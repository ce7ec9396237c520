"""The manifest: plain JSON that says what is in the folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.checkpoint.format.entries import SubtaskSnapshot
from engine.checkpoint.format.manifest import METADATA, Manifest, parse_manifest
from engine.checkpoint.restoring.restore import load_manifest
from engine.elements import MAX_TIME, MIN_TIME, Micros
from engine.errors import RestoreError, SnapshotCorrupt
from engine.operators.sources.source import SplitState

GOLDEN = Path(__file__).with_name("manifest-format-1.json")


def test_a_manifest_survives_its_file(
    tmp_path: Path, take_snapshot: Callable[..., Manifest]
) -> None:
    written = take_snapshot(tmp_path)
    assert load_manifest(str(tmp_path)) == written


def test_a_reader_needs_no_engine(tmp_path: Path, take_snapshot: Callable[..., Manifest]) -> None:
    take_snapshot(tmp_path)
    read = json.loads((tmp_path / METADATA).read_text())
    assert read["event_time"] == {"min_watermark": 100}
    counts = read["operators"][1]["states"][0]
    assert (counts["name"], counts["rows"], counts["keys"]) == ("counts", 128, {"k": "String"})
    for file in counts["files"]:
        assert (tmp_path / file["path"]).stat().st_size == file["size_bytes"]


def test_every_later_engine_reads_format_1() -> None:
    manifest = parse_manifest(GOLDEN.read_bytes(), "golden")
    assert manifest.format_version == 1
    assert manifest.job_name == "counts"
    entry = manifest.operator("count")
    assert entry is not None
    assert entry.states[0].files[1].key_groups.lo == 64
    read = manifest.operator("read")
    assert read is not None
    assert read.splits["split-1"] == SplitState({"row": 1}, Micros(101))
    out = manifest.operator("out")
    assert out is not None
    assert out.committables == ("staged 0", "staged 1")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "Expecting property name"),
        (b'{"format_version": 1}', "no 'job_id' in it"),
        (b"[]", "list indices"),
        (b"\xff", "codec can't decode"),
    ],
)
def test_a_damaged_manifest_is_refused_with_the_reason(content: bytes, reason: str) -> None:
    with pytest.raises(SnapshotCorrupt, match=f"_metadata is damaged \\(.*{reason}"):
        parse_manifest(content, "/saved/a")


def test_a_flipped_digit_is_found(tmp_path: Path, take_snapshot: Callable[..., Manifest]) -> None:
    take_snapshot(tmp_path)
    content = (tmp_path / METADATA).read_text().replace('"row": 1', '"row": 3')
    (tmp_path / METADATA).write_text(content)
    with pytest.raises(SnapshotCorrupt, match=r"damaged \(its content does not match its"):
        load_manifest(str(tmp_path))


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"checkpoint_id": 7', f'"checkpoint_id": {10**30}'),
        ('"checkpoint_id": 7', '"checkpoint_id": -7'),
        ('"format_version": 1', '"format_version": 0'),
        ('"key_groups": [0, 64]', '"key_groups": [64, 0]'),
    ],
)
def test_numbers_that_cannot_be_are_damage(was: str, now: str) -> None:
    golden = json.dumps(json.loads(GOLDEN.read_text()))
    assert was in golden
    with pytest.raises(SnapshotCorrupt, match="_metadata is damaged"):
        parse_manifest(golden.replace(was, now).encode(), "/saved/a")


def test_a_newer_format_is_refused() -> None:
    newer = json.loads(GOLDEN.read_text()) | {"format_version": 3}
    with pytest.raises(RestoreError, match="newer engine: format 3, this engine reads up to 2"):
        parse_manifest(json.dumps(newer).encode(), "/saved/a")


def test_a_folder_that_is_not_there_and_one_that_is_no_snapshot_are_told_apart(
    tmp_path: Path,
) -> None:
    with pytest.raises(RestoreError, match="snapshot is not there: no folder"):
        load_manifest(str(tmp_path / "nothing"))
    with pytest.raises(RestoreError, match="is not a snapshot: it has no _metadata"):
        load_manifest(str(tmp_path))


def position(*splits: SplitState) -> Micros:
    golden = parse_manifest(GOLDEN.read_bytes(), "golden")
    moved = {str(at): split for at, split in enumerate(splits)}
    entry = replace(golden.operators[0], splits=moved)
    return replace(golden, operators=(entry,)).min_watermark


def test_the_event_time_position_is_that_of_the_slowest_split_that_still_moves() -> None:
    slow, fast = SplitState(0, Micros(5)), SplitState(0, Micros(9))
    assert position(slow, fast) == 5
    assert position(SplitState(0, Micros(5), finished=True), fast) == 9
    assert position(SplitState(0, Micros(5), idle=True), fast) == 9
    assert position(SplitState(0, Micros(5), finished=True)) == 5
    assert position(SplitState(0)) == MIN_TIME
    assert position() == MIN_TIME


def test_unknown_and_final_watermarks_survive_json(
    tmp_path: Path, take_snapshot: Callable[..., Manifest]
) -> None:
    value = json.loads(GOLDEN.read_text())
    value["operators"][0]["watermark"] = None
    value["operators"][1]["watermark"] = MAX_TIME
    manifest = parse_manifest(json.dumps(value).encode(), "golden")
    assert manifest.operators[0].watermark == MIN_TIME
    assert parse_manifest(manifest.dump(), "again") == manifest


def test_an_acknowledgement_survives_json() -> None:
    golden = json.loads(GOLDEN.read_text())
    value = {
        "vertex": "b",
        "subtask": 1,
        "checkpoint_id": 7,
        "operators": [golden["operators"][1]],
        "timing": {"start_delay_ms": 1, "alignment_ms": 2, "sync_ms": 3, "async_ms": 4},
    }
    ack = SubtaskSnapshot.from_json(value)
    assert SubtaskSnapshot.from_json(json.loads(json.dumps(ack.to_json()))) == ack
    assert ack.size_bytes == golden["operators"][1]["states"][0]["size_bytes"]
