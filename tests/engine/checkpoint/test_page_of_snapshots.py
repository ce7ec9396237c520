"""The page for readers of snapshots: its blocks run on a savepoint as they stand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

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
