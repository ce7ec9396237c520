"""Checkpoints that failed, were subsumed or go on: what the coordinator left, as Flink says it."""

from __future__ import annotations

from typing import Any

from checkpoint_job import TASKS, Job
from engine.checkpoint.coordination.failure import FailureReason
from engine.rest.render import checkpoints
from flink_captures import capture, differences


def served() -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """The history of a job: one of each; and by id."""
    job = Job(max_concurrent=2, timeout_ms=1_000)
    job.request(now_ms=10)
    job.coordinator.decline(TASKS[1], 1, "the disk is full", 30)
    job.tick(100)
    job.tick(200)
    job.ack(TASKS[0], 2, 210)
    job.complete(3, 240)
    job.tick(300)
    job.ack(TASKS[1], 4, 310)
    body: Any = checkpoints.history(job.log.history())
    return body, {entry["id"]: entry for entry in body["history"]}


def test_each_says_what_became_of_it() -> None:
    _, entries = served()
    assert [(id_, entries[id_]["status"]) for id_ in sorted(entries)] == [
        (1, "FAILED"),
        (2, "FAILED"),
        (3, "COMPLETED"),
        (4, "IN_PROGRESS"),
    ]
    assert entries[1]["failure_message"] == (
        "savepoint 1 failed, a subtask could not write its part: sum 0: the disk is full"
    )
    assert entries[1]["failure_timestamp"] == 30
    assert entries[2]["headwater"] == {"reason": FailureReason.SUBSUMED}
    assert entries[2]["num_acknowledged_subtasks"] == 1


def test_counts_and_latest_are_of_the_right_sorts() -> None:
    body, entries = served()
    assert body["counts"] == {
        "restored": 0, "total": 4, "in_progress": 1, "completed": 1, "failed": 2,
    }  # fmt: skip
    assert body["latest"]["failed"] == entries[2]
    assert body["latest"]["completed"] == entries[3]
    assert body["latest"]["savepoint"] is None


def test_they_have_flinks_shape() -> None:
    body, entries = served()
    recorded = capture("34_checkpoints_after_savepoint")
    assert differences(entries[1], recorded["latest"]["failed"]) == set()
    assert differences(entries[3], recorded["latest"]["completed"]) == set()
    running = next(entry for entry in recorded["history"] if entry["status"] == "IN_PROGRESS")
    assert differences(entries[4], running) == set()
    assert differences(body["counts"], recorded["counts"]) == set()


def test_every_reason_is_a_sentence_of_its_own() -> None:
    sentences = {reason.sentence for reason in FailureReason}
    assert len(sentences) == len(FailureReason)
    assert {reason for reason in FailureReason if reason.counts} == {
        FailureReason.EXPIRED,
        FailureReason.DECLINED,
        FailureReason.STORAGE,
    }
