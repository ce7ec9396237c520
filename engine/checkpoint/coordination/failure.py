"""Why a snapshot came to nothing, and what a task's acknowledgement was worth.

its own fault    EXPIRED DECLINED STORAGE          counts: too many in a row restart the job
overtaken        SUBSUMED
never begun      NOT_RUNNING
the job went     TASK_LOST INPUT_ENDED JOB_STOPPED JOB_CANCELED JOB_FAILED
"""

from __future__ import annotations

from enum import StrEnum


class FailureReason(StrEnum):
    """Each with a sentence for people, and whether it counts against the job's tolerance."""

    EXPIRED = "expired"
    DECLINED = "declined"
    STORAGE = "storage"
    SUBSUMED = "subsumed"
    NOT_RUNNING = "not_running"
    TASK_LOST = "task_lost"
    RESCALED = "rescaled"
    INPUT_ENDED = "input_ended"
    JOB_STOPPED = "job_stopped"
    JOB_CANCELED = "job_canceled"
    JOB_FAILED = "job_failed"

    @property
    def sentence(self) -> str:
        """What happened."""
        return _SENTENCES[self]

    @property
    def counts(self) -> bool:
        """Whether too many of these in a row make the job restart."""
        return self in (FailureReason.EXPIRED, FailureReason.DECLINED, FailureReason.STORAGE)

    @property
    def goes_on(self) -> bool:
        """Whether the job has another attempt, which may begin what this one did not."""
        return self in (FailureReason.TASK_LOST, FailureReason.RESCALED)


_SENTENCES = {
    FailureReason.EXPIRED: "not every subtask acknowledged in time",
    FailureReason.DECLINED: "a subtask could not write its part",
    FailureReason.STORAGE: "it could not be recorded",
    FailureReason.SUBSUMED: "a newer one was complete before it",
    FailureReason.NOT_RUNNING: "not every subtask of the job runs",
    FailureReason.TASK_LOST: "the job restarted before the snapshot was complete",
    FailureReason.RESCALED: "the job changed its parallelism first",
    FailureReason.INPUT_ENDED: "the job ended first, because its input had",
    FailureReason.JOB_STOPPED: "the job was stopped first",
    FailureReason.JOB_CANCELED: "the job was cancelled before the snapshot was complete",
    FailureReason.JOB_FAILED: "the job failed before the snapshot was complete",
}


class Ack(StrEnum):
    """The four things that become of an acknowledgement."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    UNKNOWN = "unknown"
    """No such subtask, or a checkpoint that was never triggered."""
    LATE = "late"
    """The checkpoint has ended already."""
