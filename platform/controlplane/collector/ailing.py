"""What is wrong with a job that has not ended: one sentence, and since when. Pure.

    not wholly running    "2 of 4 tasks run", "waits for 4 slots, 2 free"
    failed lately         "restarted after a failure: disk is full"
    checkpoints fail      "checkpoints fail: expired before completing"
    late                  "the watermark delay is over its objective"
    held back             "held back by enrich, for which orders waits"

Order    the first of these that holds is said.
Units    points in time are epoch ms, lengths of time ms.

A look may be unlucky, so it is said after five that agree, and until five have not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from controlplane.backends.sightings import CheckpointSighting, JobSighting
from controlplane.live.topics import Payload

LOOKS = 5
LATELY_MS = 10 * 60_000
"""A failure matters so long; those that are nearer to each other are one streak."""
IN_A_ROW = 2
"""One failed checkpoint is repaired by the next."""


@dataclass(slots=True)
class FailureStreak:
    """Failures of a job that came one soon after the other."""

    first_ms: int = 0
    last_ms: int = 0
    sentence: str = ""

    def add(self, at_ms: int, sentence: str) -> None:
        """One more; those that are known change nothing."""
        if at_ms <= self.last_ms:
            return
        if at_ms - self.last_ms > LATELY_MS:
            self.first_ms = at_ms
        self.last_ms, self.sentence = at_ms, sentence


@dataclass(slots=True)
class FailedCheckpoints:
    """Checkpoints that failed, with none completed after them."""

    count: int = 0
    first_ms: int = 0
    failure: str = ""
    _newest: int = -1

    def add(self, seen: CheckpointSighting) -> None:
        """One that has ended; those that are known change nothing."""
        if seen.end_ms is None or seen.id <= self._newest or seen.is_savepoint:
            return
        self._newest = seen.id
        if seen.status != "failed":
            self.count = 0
            return
        self.first_ms = self.first_ms if self.count else seen.end_ms
        self.count, self.failure = self.count + 1, seen.failure


@dataclass(slots=True)
class Ailing:
    """The opinion on one run, from look to look."""

    failures: FailureStreak = field(default_factory=FailureStreak)
    """Of the job, with those of its earlier runs."""
    _checkpoints: FailedCheckpoints = field(default_factory=FailedCheckpoints)
    _thought: str = ""
    _looks: int = 0
    _since_ms: int = 0
    _said: str = ""
    _said_since_ms: int = 0

    def tell(self, seen: JobSighting, wall_ms: int, goal_ms: int | None, held: str) -> Payload:
        """Add a look; the columns `why` and `why_ms`, None when all is well."""
        self._take_in(seen)
        kind, text, since_ms = self._opinion(seen, wall_ms, goal_ms, held)
        if kind != self._thought:
            self._thought, self._looks, self._since_ms = kind, 0, since_ms or wall_ms
        self._looks += 1
        if self._looks >= LOOKS:
            self._said, self._said_since_ms = text, since_ms or self._since_ms
        if not self._said:
            return {"why": None, "why_ms": None}
        return {"why": self._said, "why_ms": self._said_since_ms}

    def _take_in(self, seen: JobSighting) -> None:
        for failure in reversed(seen.failures):
            self.failures.add(failure.at_ms, failure.sentence)
        for checkpoint in sorted(seen.checkpoints, key=lambda one: one.id):
            self._checkpoints.add(checkpoint)

    def _opinion(
        self, seen: JobSighting, wall_ms: int, goal_ms: int | None, held: str
    ) -> tuple[str, str, int | None]:
        """Its kind, the sentence, and since when if that is known."""
        if text := not_wholly_running(seen):
            return "parts", text, None
        if self.failures.sentence and wall_ms - self.failures.last_ms < LATELY_MS:
            text = f"restarted after a failure: {self.failures.sentence}"
            return "failed", text, self.failures.first_ms
        if self._checkpoints.count >= IN_A_ROW:
            text = f"checkpoints fail: {self._checkpoints.failure or 'the engine gave no reason'}"
            return "checkpoints", text, self._checkpoints.first_ms
        if goal_ms and (seen.delay_ms or 0) > goal_ms:
            return "late", "the watermark delay is over its objective", None
        return ("held", held, None) if held else ("", "", None)


def not_wholly_running(seen: JobSighting) -> str:
    """Why the job does not run, or not wholly; empty when it does."""
    if seen.waiting_for:
        return seen.waiting_for
    total = sum(vertex.parallelism for vertex in seen.vertices)
    running = sum(vertex.running for vertex in seen.vertices)
    return f"{running} of {total} tasks run" if seen.state == "RUNNING" and running < total else ""
