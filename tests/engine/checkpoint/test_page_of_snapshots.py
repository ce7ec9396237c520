"""The page for readers of snapshots: its blocks run on a savepoint as they stand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from engine.checkpoint.inspection.reading import open_snapshot
from golden_snapshots import formats, snapshots

PAGE = (Path(__file__).parents[3] / "docs" / "snapshots.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_blocks_read_a_savepoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (name,) = re.findall(r'Path\("(savepoint-[^"]+)"\)', PAGE)
    shutil.copytree(snapshots(formats()[-1])[0], tmp_path / name)
    monkeypatch.chdir(tmp_path)
    exec("\n".join(BLOCKS), {})
    printed = capsys.readouterr().out
    assert printed.startswith("every kind at ")
    assert re.search(r"priced orders value 6 \d+", printed)
    assert printed.endswith("slices of 6 users\n")


def test_the_block_for_checkpoints_reads_layers() -> None:
    folder = snapshots(formats()[-1])[-1]
    page: dict[str, Any] = {"pl": pl}
    exec(next(block for block in BLOCKS if "def place" in block), page)
    opened = open_snapshot(str(folder))
    states = [state for _, state in opened.states() if state.rows]
    assert sum(state.is_layered for state in states) > 3
    for state in states:
        found = page["rows"](folder, state.to_json()).collect()
        wanted = opened.collect(opened.scan(state))
        assert_frame_equal(found, wanted, check_row_order=False)
