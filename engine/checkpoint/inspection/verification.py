"""Whether every file of a snapshot is as it was written.

    Snapshot --verify: every byte of every file, against its checksum--> Verification

Cost     reads the whole snapshot, one file at a time, in little memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.checkpoint.inspection.reading import Progress, Snapshot, unheard

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verification:
    """What a look at every byte has found."""

    files: int
    size_bytes: int
    """Of all files, as the manifest says."""
    problems: tuple[str, ...]
    """A sentence per file that is missing, torn or altered."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        return {
            "whole": self.is_whole,
            "files": self.files,
            "size_bytes": self.size_bytes,
            "problems": list(self.problems),
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> Verification:
        """Read what `to_json` gave."""
        return cls(int(value["files"]), int(value["size_bytes"]), tuple(value["problems"]))


def verify(snapshot: Snapshot, progress: Progress = unheard) -> Verification:
    """Read every file; `progress` hears of bytes."""
    files = [file for _, state in snapshot.states() for file in state.files]
    total, done, problems = sum(file.size_bytes for file in files), 0, []
    for file in files:
        problem = snapshot.problem(file)
        if problem is not None:
            problems.append(problem)
        done += file.size_bytes
        progress(done, total)
    return Verification(len(files), total, tuple(problems))
