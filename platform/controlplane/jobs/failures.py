"""Failures of runs, kept: which are the same, and how they come into the database.

    FailureSighting ─▶ FailureNotes.take_in ─▶ RunFailure, one per run and moment

Guarantee  idempotent: a failure is its run and its moment, so what is seen again changes nothing; a
           collector that is killed goes on where it was.
Missing    what it was restarted from is known when the engine's last restore was seen before the
           next failure; otherwise it stays null.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from controlplane.backends.sightings import FailureSighting, RestoreSighting
from controlplane.jobs.models import Run, RunFailure
from controlplane.moments import moment

TRACE_CHARACTERS = 16_000
"""A deep recursion has a thousand frames that say the same: its ends say what happened."""
SENTENCE_CHARACTERS = 2_000
ECHOES = 20
"""A job of a thousand subtasks that ends has a thousand echoes, all alike."""
KEPT = 2_000
"""Rows kept per run: a week of a job that fails every five minutes."""

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_NUMBERED = re.compile(r"\S*\d\S*")
_SUBTASK = re.compile(r"\s*\(\d+/\d+\).*$")


def fingerprint(seen: FailureSighting) -> str:
    """The same for failures of one type, place and wording: values and numbers do not count."""
    wording = _NUMBERED.sub("#", _QUOTED.sub("'…'", seen.sentence))
    place = seen.operator or _SUBTASK.sub("", seen.task)
    told = "\n".join((seen.domain, seen.name, place, wording))
    return hashlib.sha1(told.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


@dataclass(slots=True)
class FailureNotes:
    """The failures of one run: what is written already, so that only news are."""

    _written: dict[int, FailureSighting] = field(default_factory=dict)
    _restored_ms: int | None = None

    def take_in(
        self, run: Run, seen: Sequence[FailureSighting], restored: RestoreSighting | None
    ) -> None:
        """Write failures that are new or have more echoes; `seen` is newest first."""
        news = [one for one in seen if self._written.get(one.at_ms) != one]
        if news:
            RunFailure.objects.bulk_create(
                [_row(run, one) for one in news],
                update_conflicts=True,
                unique_fields=["run", "at"],
                update_fields=_TOLD,
            )
            self._written = {one.at_ms: one for one in seen}
        if restored is not None and restored.at_ms != self._restored_ms:
            _note_restore(run, seen, restored)
            self._restored_ms = restored.at_ms


def _note_restore(run: Run, seen: Sequence[FailureSighting], restored: RestoreSighting) -> None:
    """The restore follows from the last failure before it."""
    before = next((one for one in seen if one.at_ms <= restored.at_ms), None)
    if before is None:
        return
    rows = RunFailure.objects.filter(run=run, at=moment(before.at_ms), restarted_at=None)
    rows.update(
        restarted_at=moment(restored.at_ms),
        restored_checkpoint=restored.checkpoint,
        restored_savepoint=restored.is_savepoint,
        restored_path=_kept(restored.path, 500),
    )


def prune(run: Run) -> None:
    """Drop the oldest failures beyond what is kept."""
    moments = RunFailure.objects.filter(run=run).order_by("-at").values_list("at", flat=True)
    oldest_kept = moments[KEPT - 1 : KEPT].first()
    if oldest_kept is not None:
        RunFailure.objects.filter(run=run, at__lt=oldest_kept).delete()


_TOLD = [
    *("name", "sentence", "trace", "domain", "operator", "task", "task_manager"),
    *("verdict", "echoes", "fingerprint"),
]


def _row(run: Run, seen: FailureSighting) -> RunFailure:
    return RunFailure(
        run=run,
        at=moment(seen.at_ms),
        name=_kept(seen.name, 200),
        sentence=_kept(seen.sentence, SENTENCE_CHARACTERS),
        trace=_kept(shortened(seen.trace)),
        domain=_kept(seen.domain, 16),
        operator=_kept(seen.operator, 300),
        task=_kept(seen.task, 500),
        task_manager=_kept(seen.task_manager, 200),
        verdict=_kept(seen.verdict, SENTENCE_CHARACTERS),
        echoes=[_echo(one) for one in seen.echoes[:ECHOES]],
        fingerprint=fingerprint(seen),
    )


def shortened(trace: str) -> str:
    """The trace, or both of its ends."""
    if len(trace) <= TRACE_CHARACTERS:
        return trace
    end = TRACE_CHARACTERS // 2
    return f"{trace[:end]}\n… {len(trace) - 2 * end:,} characters are left out …\n{trace[-end:]}"


def _echo(seen: FailureSighting) -> dict[str, Any]:
    return {
        "name": _kept(seen.name, 200),
        "sentence": _kept(seen.sentence, SENTENCE_CHARACTERS),
        "task": _kept(seen.task, 500),
        "at_ms": seen.at_ms,
    }


def _kept(text: str, characters: int | None = None) -> str:
    """What databases can keep: no half characters, and no NUL, which Postgres refuses."""
    whole = text.encode("utf-8", "replace").decode()
    return whole.replace("\0", "\N{REPLACEMENT CHARACTER}")[:characters]
