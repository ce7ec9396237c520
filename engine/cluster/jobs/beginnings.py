"""Splits of a job that do not go on where its snapshot left them: chosen, or agreed to.

    HOME/jobs/<job id>/beginnings.json
        {"format_version": 1, "sources": {uid: {"starts": {split: position}, "ended": [split, …]}}}

Guarantee  decided once, before the job is recorded; read by every attempt that begins at the
           snapshot which the job was given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from engine.checkpoint.restoring.inputs import Chosen, Inputs

BEGINNINGS = "beginnings.json"
FORMAT_VERSION = 1


def keep_beginnings(folder: Path, inputs: Inputs) -> None:
    """Write down which splits have ended or begin elsewhere, if any."""
    sources = {
        uid: {"starts": dict(one.starts), "ended": sorted(one.gaps)}
        for uid, one in inputs.items()
        if one.gaps or one.starts
    }
    if sources:
        kept = {"format_version": FORMAT_VERSION, "sources": sources}
        (folder / BEGINNINGS).write_text(json.dumps(kept))


def beginnings_of(folder: Path) -> Mapping[str, Chosen]:
    """What was decided, by uid of the source."""
    path = folder / BEGINNINGS
    kept = json.loads(path.read_text())["sources"] if path.exists() else {}
    return {uid: Chosen(one["starts"], one["ended"]) for uid, one in kept.items()}
