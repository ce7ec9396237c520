"""The life of a job as a pure state machine: which state may follow which, and since when.

    CREATED ──▶ RUNNING ──▶ FINISHED
       │         │   ▲
       │         ▼   │
       ├──▶ RESTARTING
       │         │            from CREATED, RUNNING and RESTARTING:
       ├──▶ FAILING ──▶ FAILED                a failure that a restart cannot help
       └──▶ CANCELLING ──▶ CANCELED           a person's wish; also from FAILING

CREATED and RESTARTING last while a job waits for slots, or for its workers to restore their state;
RUNNING means that every subtask processes. FAILING and CANCELLING last until every worker is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.errors import InternalError
from engine.rest.model.jobs import JobStatus

_MOVES: Mapping[JobStatus, frozenset[JobStatus]] = {
    JobStatus.CREATED: frozenset(
        {JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.FAILING, JobStatus.CANCELLING}
    ),
    JobStatus.RUNNING: frozenset(
        {JobStatus.RESTARTING, JobStatus.FAILING, JobStatus.CANCELLING, JobStatus.FINISHED}
    ),
    JobStatus.RESTARTING: frozenset({JobStatus.RUNNING, JobStatus.FAILING, JobStatus.CANCELLING}),
    JobStatus.FAILING: frozenset({JobStatus.FAILED, JobStatus.CANCELLING}),
    JobStatus.CANCELLING: frozenset({JobStatus.CANCELED}),
}


def may_follow(present: JobStatus, following: JobStatus) -> bool:
    """Whether a job may go from one state to another.

    >>> may_follow(JobStatus.RUNNING, JobStatus.FINISHED)
    True
    >>> may_follow(JobStatus.FINISHED, JobStatus.RUNNING)
    False
    """
    return following in _MOVES.get(present, frozenset())


@dataclass(slots=True)
class JobLife:
    """The state of one job and when each state was last entered."""

    status: JobStatus
    entered_ms: dict[JobStatus, int] = field(default_factory=dict)

    @classmethod
    def begin(cls, now_ms: int) -> JobLife:
        """A job that was just accepted."""
        entered = {JobStatus.INITIALIZING: now_ms, JobStatus.CREATED: now_ms}
        return cls(JobStatus.CREATED, entered)

    def move(self, to: JobStatus, now_ms: int) -> None:
        """Enter a state. Raises InternalError for a move that the machine does not have."""
        if not may_follow(self.status, to):
            msg = f"job cannot go from {self.status} to {to}"
            raise InternalError(msg)
        self.status = to
        self.entered_ms[to] = now_ms

    @property
    def end_ms(self) -> int:
        """When it ended; -1 while it lives."""
        return self.entered_ms[self.status] if self.status.terminal else -1
