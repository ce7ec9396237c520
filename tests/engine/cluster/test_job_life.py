"""Which states of a job may follow which."""

import pytest

from engine.cluster.jobs.life import JobLife, may_follow
from engine.errors import InternalError
from engine.rest.model.jobs import JobStatus


def test_a_new_job_is_created_and_has_not_ended():
    life = JobLife.begin(now_ms=7)
    assert life.status is JobStatus.CREATED
    assert life.entered_ms == {JobStatus.INITIALIZING: 7, JobStatus.CREATED: 7}
    assert life.end_ms == -1


def test_a_job_that_restarts_and_finishes_remembers_when():
    life = JobLife.begin(now_ms=1)
    for at, status in enumerate(["RUNNING", "RESTARTING", "RUNNING", "FINISHED"], start=2):
        life.move(JobStatus(status), at)
    assert life.entered_ms[JobStatus.RUNNING] == 4
    assert life.end_ms == 5


@pytest.mark.parametrize("ended", [JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED])
@pytest.mark.parametrize("following", list(JobStatus))
def test_nothing_follows_an_end(ended, following):
    assert not may_follow(ended, following)


def test_a_job_fails_only_after_its_workers_are_gone():
    life = JobLife.begin(now_ms=1)
    with pytest.raises(InternalError, match="cannot go from CREATED to FAILED"):
        life.move(JobStatus.FAILED, 2)
    life.move(JobStatus.FAILING, 3)
    life.move(JobStatus.FAILED, 4)
    assert life.end_ms == 4


@pytest.mark.parametrize("status", list(JobStatus))
def test_every_state_that_a_job_can_be_in_can_be_cancelled_until_it_ends(status):
    reachable = {JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.FAILING}
    assert may_follow(status, JobStatus.CANCELLING) is (status in reachable)
