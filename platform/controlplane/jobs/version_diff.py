"""What differs between two versions of a job: the text by lines, and the settings they ran with.

    a Python file     unified: lines of both, with three lines around each change
    an archive        its list of files: added, removed, changed; nothing of it is unpacked

Cost     files of more than 400,000 characters are only compared as a whole.
"""

from __future__ import annotations

import difflib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from controlplane.access.errors import Refused
from controlplane.jobs.artifacts import is_whole
from controlplane.jobs.configuration import TITLES, worded
from controlplane.jobs.models import JobVersion, Run
from controlplane.jobs.settings import settings_from

MOST_CHARACTERS = 400_000
MOST_LINES = 5_000
AROUND = 3
Kind = Literal["same", "added", "removed", "gap"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line, with its number in either file."""

    kind: Kind
    old: int | None
    new: int | None
    text: str

    @property
    def sign(self) -> str:
        """As in a unified diff."""
        return {"added": "+", "removed": "−", "same": " ", "gap": "⋯"}[self.kind]


@dataclass(frozen=True, slots=True)
class SettingDelta:
    """One setting with which the two versions ran differently."""

    title: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """Both versions and what differs."""

    old: JobVersion
    new: JobVersion
    lines: tuple[DiffLine, ...]
    note: str
    """What is not shown, and why."""
    settings: tuple[SettingDelta, ...]
    settings_note: str

    @property
    def added(self) -> int:
        """Lines that are new."""
        return sum(line.kind == "added" for line in self.lines)

    @property
    def removed(self) -> int:
        """Lines that are gone."""
        return sum(line.kind == "removed" for line in self.lines)


def version_diff(old: JobVersion, new: JobVersion) -> VersionDiff:
    """What differs. Raises Refused (409) when a file is gone."""
    before, after = _text_of(old), _text_of(new)
    lines, note = _lines(before, after)
    settings, settings_note = _settings(old, new)
    return VersionDiff(old, new, lines, note, settings, settings_note)


def _lines(before: str, after: str) -> tuple[tuple[DiffLine, ...], str]:
    if before == after:
        return (), "The two files are the same."
    if max(len(before), len(after)) > MOST_CHARACTERS:
        return (
            (),
            f"The files differ, and are too long to show: over {MOST_CHARACTERS:,} characters.",
        )
    found = tuple(diff_lines(before.splitlines(), after.splitlines()))
    if len(found) > MOST_LINES:
        return found[:MOST_LINES], f"The first {MOST_LINES:,} lines of {len(found):,} are shown."
    return found, ""


def diff_lines(before: list[str], after: list[str]) -> Iterator[DiffLine]:
    """The lines of a unified diff."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for place, group in enumerate(matcher.get_grouped_opcodes(AROUND)):
        if place:
            yield DiffLine("gap", None, None, "")
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                for step, text in enumerate(before[old_from:old_to]):
                    yield DiffLine("same", old_from + step + 1, new_from + step + 1, text)
                continue
            for number in range(old_from, old_to):
                yield DiffLine("removed", number + 1, None, before[number])
            for number in range(new_from, new_to):
                yield DiffLine("added", None, number + 1, after[number])


def _text_of(version: JobVersion) -> str:
    """Its text; of an archive the list of its files, with size and checksum."""
    if not is_whole(version.artifact, version.checksum):
        msg = f"the file of {version} is gone or was altered: {version.artifact}; upload it again"
        raise Refused(409, "artifact", msg)
    if version.filename.endswith(".py"):
        return version.artifact.read_text(errors="replace")
    with zipfile.ZipFile(version.artifact) as archive:
        members = sorted(archive.infolist(), key=lambda member: member.filename)
    return "\n".join(
        f"{member.filename}  {member.file_size:,} bytes  {member.CRC:08x}" for member in members
    )


def _settings(old: JobVersion, new: JobVersion) -> tuple[tuple[SettingDelta, ...], str]:
    before, after = _ran_with(old), _ran_with(new)
    if before is None or after is None:
        never = " and ".join(
            f"version {version.number}"
            for version, values in ((old, before), (new, after))
            if values is None
        )
        return (), f"No run of {never} kept its settings, so there is nothing to compare."
    found = tuple(
        SettingDelta(title, worded(name, before[name]), worded(name, after[name]))
        for name, title in TITLES.items()
        if before[name] != after[name]
    )
    return found, "" if found else "Their newest runs had the same settings."


def _ran_with(version: JobVersion) -> dict[str, Any] | None:
    """The settings of its newest live run."""
    run = version.runs.filter(purpose=Run.Purpose.LIVE).exclude(settings={}).first()
    return settings_from(run.settings).as_json() if run else None
