"""Splits of a job whose input was gone when it started, with consent: they have ended.

    HOME/jobs/<job id>/gaps.json    {"format_version": 1, "splits": {uid: [split, …]}}

Guarantee  decided once, before the job is recorded; read by every attempt that begins at the
           snapshot which the job was given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.checkpoint.restoring.inputs import Inputs

GAPS = "gaps.json"
FORMAT_VERSION = 1


def keep_gaps(folder: Path, inputs: Inputs) -> None:
    """Write down which splits have ended, if any."""
    splits = {uid: sorted(one.gaps) for uid, one in inputs.items() if one.gaps}
    if splits:
        kept = {"format_version": FORMAT_VERSION, "splits": splits}
        (folder / GAPS).write_text(json.dumps(kept))


def gaps_of(folder: Path) -> Mapping[str, Sequence[str]]:
    """The splits, by uid of their source."""
    path = folder / GAPS
    return dict(json.loads(path.read_text())["splits"]) if path.exists() else {}
