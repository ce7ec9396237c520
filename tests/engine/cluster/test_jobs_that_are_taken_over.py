"""Jobs that a new job manager finds: also those of which it cannot read the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cluster.answers import views
from engine.cluster.jobs.deployment import Surroundings
from engine.cluster.jobs.registry import Jobs
from engine.cluster.machines.fleet import Fleet
from engine.cluster.programs.artifacts import Artifacts
from engine.cluster.store.rows import JobRow
from engine.cluster.store.store import Store
from engine.rest.model.jobs import JobStatus
from engine.rest.render import jobs as rendered
from job_stage import PLAN

JOB = "a" * 32


@pytest.fixture
def store(tmp_path: Path):
    store = Store(tmp_path / "engine.db")
    yield store
    store.close()


def taken_over(store: Store, home: Path) -> Jobs:
    fleet = Fleet(store, lambda: None)
    jobs = Jobs(home, Surroundings(store, fleet, home, home, 100), Artifacts(home, store))
    jobs.recover()
    return jobs


def left_behind(store: Store, home: Path, status: JobStatus, plan: str, **settings: str) -> None:
    (home / "plan.json").write_text(plan)
    entered = {JobStatus.CREATED: 1, status: 2}
    store.add_job(JobRow(JOB, "tides", status, entered, 1, str(home), str(home), settings=settings))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (JobStatus.RUNNING, JobStatus.FAILED),
        (JobStatus.CREATED, JobStatus.FAILED),
        (JobStatus.RESTARTING, JobStatus.FAILED),
        (JobStatus.FAILING, JobStatus.FAILED),
        (JobStatus.CANCELLING, JobStatus.CANCELED),
        (JobStatus.FINISHED, JobStatus.FINISHED),
    ],
)
async def test_a_job_whose_plan_cannot_be_read_is_shown_as_ended(
    store: Store, tmp_path: Path, before: JobStatus, after: JobStatus
) -> None:
    left_behind(store, tmp_path, before, "{")
    (master,) = taken_over(store, tmp_path).masters
    assert master.life.status is after
    assert store.jobs()[0].status is after
    details = views.job_details(master, Fleet(store, lambda: None))
    (shown,) = rendered.overview([details], 9)["jobs"]
    assert (shown["name"], shown["state"]) == ("tides", after)
    if after is JobStatus.FAILED:
        assert details.failure is not None
        assert details.failure.message.startswith("plan cannot be read: JSONDecodeError")


async def test_it_says_so_again_to_the_next_job_manager(store: Store, tmp_path: Path) -> None:
    left_behind(store, tmp_path, JobStatus.RUNNING, "{")
    (tmp_path / "plan.json").unlink()
    taken_over(store, tmp_path)
    (master,) = taken_over(store, tmp_path).masters
    assert [failure.message for failure in master.failures.newest_first] == [
        f"plan {tmp_path}/plan.json cannot be read: [Errno 2] No such file or directory: "
        f"'{tmp_path}/plan.json'; submit the job file again"
    ]


async def test_a_setting_that_no_engine_takes_any_more_fails_its_job_only(
    store: Store, tmp_path: Path
) -> None:
    wrong = {"execution.checkpointing.timeout": "soon"}
    left_behind(store, tmp_path, JobStatus.RUNNING, PLAN.to_json(), **wrong)
    (master,) = taken_over(store, tmp_path).masters
    assert master.life.status is JobStatus.FAILED
    assert "execution.checkpointing.timeout" in master.failures.newest_first[0].message
