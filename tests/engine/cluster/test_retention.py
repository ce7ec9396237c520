"""A job manager that has run many jobs is as small as one that has run few."""

from __future__ import annotations

import asyncio
import gc
import logging
import tracemalloc
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from engine.checkpoint.coordination.effects import SnapshotRequest
from engine.checkpoint.restoring.inputs import Positions
from engine.cluster.forgetting import Rules
from engine.cluster.jobs.deployment import Surroundings
from engine.cluster.jobs.operations import What
from engine.cluster.jobs.registry import Jobs
from engine.cluster.machines.fleet import Fleet
from engine.cluster.programs.artifacts import Artifacts, Built
from engine.cluster.programs.build import GRAPH, PLAN
from engine.cluster.retention import ARTIFACTS_KEPT, Retention
from engine.cluster.settings.job_settings import EXTERNALIZED
from engine.cluster.store.rows import OperationRow
from engine.cluster.store.store import Store
from engine.elements import SnapshotKind
from engine.errors import ConfigError
from engine.graph.plan import OperatorKind, OperatorPlan, Plan, VertexPlan
from engine.rest.model.cluster import Artifact
from engine.rest.model.requests import Program, RunRequest
from engine.testing.played_fleet import PlayedTaskManager

Settings = Mapping[str, str]

FOLDERS = ("artifacts", "checkpoints", "environments", "jobs", "logs")

VERTEX = "cd" * 16
PLAN_OF_ALL = Plan(
    name="numbers",
    max_parallelism=128,
    checkpoint_interval_ms=None,
    vertices=(
        VertexPlan(
            VERTEX, "numbers", 1, (OperatorPlan("numbers", "n", OperatorKind.SOURCE, "source"),)
        ),
    ),
    edges=(),
)


class Core:
    """The job manager without REST, sockets and processes."""

    def __init__(self, home: Path, rules: Rules) -> None:
        for folder in FOLDERS:
            (home / folder).mkdir(exist_ok=True)
        self.home, self.rules = home, rules
        self.store = Store(Path(":memory:"))
        fleet = Fleet(self.store, lambda: self.jobs.on_slots())
        around = Surroundings(self.store, fleet, home, home / "logs", 100)
        artifacts = Artifacts(home, self.store)
        self.jobs = Jobs(home, around, artifacts)
        self.retention = Retention(home, self.store, self.jobs, artifacts, rules)
        self.task_manager = PlayedTaskManager(fleet, slots=4)

    async def submit(self, number: int, settings: Settings) -> str:
        async def build(folder: Path, _positions: Positions) -> Built:
            folder.mkdir()
            (folder / GRAPH).write_bytes(b"")
            (folder / PLAN).write_text(PLAN_OF_ALL.to_json())
            return Built(folder, self.home / "artifacts", PLAN_OF_ALL)

        job_id = f"{number:032x}"[::-1]
        (self.home / "logs" / f"job-{job_id[:8]}-0.log").write_text("said\n")
        request = RunRequest(Program("", settings=settings), job_id)
        return await self.jobs.submit(request, build)

    async def run(self, numbers: Iterable[int], settings: Settings | None = None) -> list[str]:
        """Run jobs to their end, each with a checkpoint that was asked for."""
        ids = [await self.submit(number, settings or {}) for number in numbers]
        for job_id in ids:
            trigger, _ = self.jobs.operations.begin(What.CHECKPOINT, job_id, None)
            request = SnapshotRequest(trigger, SnapshotKind.CHECKPOINT)
            self.jobs.find(job_id).request(request)
        while not all(self.jobs.find(job_id).life.status.terminal for job_id in ids):
            self.jobs.ended.clear()
            await self.jobs.ended.wait()
        return ids

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*"))

    def rows(self) -> int:
        """Of the whole store."""
        tables = ("jobs", "attempts", "snapshots", "operations", "failures", "processes")
        counts = (f"SELECT count(*) FROM {table}" for table in tables)
        return sum(int(self.store._db.execute(count).fetchone()[0]) for count in counts)


@pytest.fixture
def rules() -> Rules:
    return Rules(max_capacity=10)


@pytest.fixture
async def core(tmp_path: Path, rules: Rules) -> AsyncIterator[Core]:
    core = Core(tmp_path, rules)
    yield core
    core.store.close()


async def test_many_jobs_leave_memory_files_and_rows_as_they_were(core: Core) -> None:
    logging.getLogger("engine").setLevel(logging.WARNING)
    memory, files, rows = [], [], []
    tracemalloc.start()
    for wave in range(9):
        await core.run(range(20 * wave, 20 * wave + 20))
        await core.retention.clean(at_ms=0)
        if wave % 3 == 2:
            gc.collect()
            memory.append(tracemalloc.get_traced_memory()[0])
            files.append(len(core.files()))
            rows.append(core.rows())
    tracemalloc.stop()
    assert len(core.jobs.masters) == 10
    assert files == [files[0]] * 3
    assert rows == [rows[0]] * 3
    # A job that is held by anything takes ten times as much.
    assert (memory[-1] - memory[0]) / 120 < 1_000


async def test_two_who_clean_up_at_once_do_not_disturb_each_other(core: Core) -> None:
    await core.run(range(15))
    await asyncio.gather(core.retention.clean(at_ms=0), core.retention.clean(at_ms=0))
    assert len(core.jobs.masters) == 10


async def test_a_living_job_is_never_forgotten(core: Core) -> None:
    core.task_manager.endless = True
    job_id = await core.submit(1, {})
    await core.retention.clean(at_ms=2**60)
    assert [master.row.job_id for master in core.jobs.masters] == [job_id]
    assert any(file.endswith(PLAN) for file in core.files())


async def test_jobs_and_operations_are_forgotten_after_their_time(core: Core) -> None:
    (job_id,) = await core.run([1])
    end_ms = core.jobs.find(job_id).life.end_ms
    await core.retention.clean(end_ms + core.rules.expiration_ms - 1)
    assert len(core.jobs.masters) == 1
    core.store.add_operation(OperationRow("t" * 32, None, What.DISPOSAL, end_ms - 1, done=True))
    await core.retention.clean(end_ms + core.rules.expiration_ms)
    assert (len(core.jobs.masters), core.rows()) == (0, 0)
    assert core.files() == [*FOLDERS]


@pytest.mark.parametrize(
    ("wish", "stays"),
    [(None, False), ("RETAIN_ON_CANCELLATION", True), ("delete_on_cancellation", False)],
)
async def test_checkpoints_of_a_cancelled_job_stay_if_it_says_so(
    core: Core, wish: str | None, stays: bool
) -> None:
    core.task_manager.endless = True
    job_id = await core.submit(1, {} if wish is None else {EXTERNALIZED: wish})
    master = core.jobs.find(job_id)
    master.request(SnapshotRequest("t" * 32, SnapshotKind.CHECKPOINT))
    while core.store.recovery_point(job_id) is None:
        await asyncio.sleep(0.001)
    master.cancel()
    await core.jobs.ended.wait()
    await core.retention.clean(at_ms=2**60)
    assert list(core.jobs.masters) == []
    assert any("chk-1" in file for file in core.files()) is stays


async def test_checkpoints_that_another_job_needs_stay(core: Core) -> None:
    first, second = await core.run([1, 2])
    point = core.store.recovery_point(first)
    assert point is not None
    core.task_manager.endless = True
    heir = await core.submit(3, {})
    core.store.claim(replace(point, job_id=heir))
    await core.retention.clean(at_ms=2**60)
    assert {master.row.job_id for master in core.jobs.masters} == {first, heir}
    assert Path(point.path).exists()
    assert not (core.home / "checkpoints" / second).exists()


async def test_a_wrong_wish_for_checkpoints_is_told_at_once(core: Core) -> None:
    with pytest.raises(ConfigError, match=r"must be one of NO_EXTER.*: got 'no'"):
        await core.submit(1, {EXTERNALIZED: "no"})


async def test_what_a_killed_job_manager_left_is_swept(core: Core) -> None:
    (job_id,) = await core.run([1])
    for left in ("jobs/half", "artifacts/.hash.1a.partial", "environments/.hash.1a.partial"):
        (core.home / left).mkdir()
    (core.home / "logs" / "job-0000abcd-0.log").touch()
    (core.home / "logs" / "tm-1.log").touch()
    before = core.files()
    await core.retention.sweep()
    left = {
        *("jobs/half", "artifacts/.hash.1a.partial", "environments/.hash.1a.partial"),
        "logs/job-0000abcd-0.log",
    }
    assert set(before) - set(core.files()) == left
    assert f"jobs/{job_id}" in core.files()


async def test_uploads_that_no_job_needs_go_but_for_the_newest(core: Core) -> None:
    for at in range(ARTIFACTS_KEPT + 3):
        name = f"{at:032x}"
        (core.home / "artifacts" / name).mkdir()
        core.store.add_artifact(Artifact(f"{name}_job.py", "job.py", at, 1))
    await core.retention.clean(at_ms=0)
    left = sorted(path.name for path in (core.home / "artifacts").iterdir())
    assert left == [f"{at:032x}" for at in range(3, ARTIFACTS_KEPT + 3)]
