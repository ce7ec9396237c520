"""Why a snapshot came to nothing, and what a task's acknowledgement was worth."""

from __future__ import annotations

from enum import StrEnum


class FailureReason(StrEnum):
    """Each with a sentence for people, and whether it counts against the job's tolerance."""

    EXPIRED = "expired"
    DECLINED = "declined"
    STORAGE = "storage"
    TASK_LOST = "task_lost"
    JOB_ENDED = "job_ended"

    @property
    def sentence(self) -> str:
        """What happened."""
        return _SENTENCES[self]

    @property
    def counts(self) -> bool:
        """Whether too many of these in a row make the job restart."""
        return self in (FailureReason.EXPIRED, FailureReason.DECLINED, FailureReason.STORAGE)


_SENTENCES = {
    FailureReason.EXPIRED: "not every subtask acknowledged in time",
    FailureReason.DECLINED: "a subtask could not write its part",
    FailureReason.STORAGE: "it could not be recorded",
    FailureReason.TASK_LOST: "the job restarted before the snapshot was complete",
    FailureReason.JOB_ENDED: "the job ended before the snapshot was complete",
}


class Ack(StrEnum):
    """The four things that become of an acknowledgement."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    UNKNOWN = "unknown"
    """No such subtask, or a checkpoint that was never triggered."""
    LATE = "late"
    """The checkpoint has ended already."""
