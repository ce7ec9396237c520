"""An engine in memory, whole enough to run every operation against, with faults on demand.

    engine = fake.engine("lab")              its cluster has the address  fake://lab
    engine.fail("start", EngineAway("…"))    the next call of `start` fails before it does anything
    engine.drop_answer("start")              the next call works, but its answer is lost
    engine.crash_job(id, "disk is full")     the job fails
    engine.keep_restarting(id, "no disk")    the job fails over and over
    engine.forget_triggers()                 as when a job manager restarts

Order    nothing happens by itself: a job comes up and a savepoint completes after a fixed number of
         looks at it, so tests need no clock.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from controlplane.backends.contract import (
    SETTING_NAME,
    SETTING_UNTIL,
    EngineJob,
    SavepointSummary,
    Start,
    TriggerStatus,
)
from controlplane.backends.errors import EngineRefused, UnknownJob, UnknownTrigger, Unsupported
from controlplane.backends.fake_parts import SPLITS, FakeJob, FakeRescale, FakeTrigger, plan_at
from controlplane.backends.fake_programs import FakePrograms
from controlplane.backends.fake_snapshots import CONTENTS

PLAN = plan_at(1)
"""Of every job at parallelism 1."""


@dataclass
class FakeEngine(FakePrograms):
    """One engine in memory; see the module for its faults."""

    jobs: dict[str, FakeJob] = field(default_factory=dict)
    event_time: datetime = datetime(2013, 3, 1, tzinfo=UTC)
    """Event-time position that its next savepoint gets."""
    looks_until_up: int = 1
    looks_until_end: int = 3
    """Of a job that is up and ends by itself at an event time."""
    splits: Mapping[str, Any] = field(default_factory=lambda: deepcopy(SPLITS))
    """Positions that its next savepoint gets."""
    slots: int = 8
    rescales: bool = True
    """Whether it can rescale a running job."""
    operators: Mapping[str, Any] = field(default_factory=dict)
    """The plan that it gives for every job."""
    limits: dict[str, float | None] = field(default_factory=dict)
    speeds: dict[str, float | None] = field(default_factory=dict)
    _triggers: dict[str, FakeTrigger] = field(default_factory=dict)
    _rescales: dict[str, FakeRescale] = field(default_factory=dict)

    # Faults.

    def crash_job(self, engine_job_id: str, sentence: str) -> None:
        """Let a job fail."""
        job = self.jobs[engine_job_id]
        job.status = replace(job.status, state="FAILED", tasks_running=0, failure=sentence)

    def keep_restarting(self, engine_job_id: str, sentence: str) -> None:
        """Let a job fail and start again, over and over."""
        job = self.jobs[engine_job_id]
        job.status = replace(job.status, state="RESTARTING", tasks_running=0, failure=sentence)
        job.looks_until_up = sys.maxsize

    def forget_triggers(self) -> None:
        """Lose every trigger id, as a job manager does when it restarts."""
        for trigger in self._triggers.values():
            self._complete(trigger)
        self._triggers.clear()
        self.looks.clear()
        self._rescales.clear()

    def fail_savepoints(self, sentence: str) -> None:
        """Let every savepoint on its way fail."""
        for trigger in self._triggers.values():
            trigger.failure = sentence

    def fail_rescales(self, sentence: str) -> None:
        """Let every rescale on its way fail: the job runs on as it was."""
        for rescale in self._rescales.values():
            rescale.failure = sentence

    def complete_checkpoint(self, engine_job_id: str, number: int) -> str:
        """Let a job complete a checkpoint; its folder."""
        self.checkpoints[engine_job_id] = f"/checkpoints/{engine_job_id}/chk-{number}"
        return self.checkpoints[engine_job_id]

    # The contract.

    def start(self, request: Start) -> None:
        """Start a job unless its id is taken."""
        self._enter("start")
        if request.engine_job_id in self.jobs:
            msg = f"job {request.engine_job_id} has been submitted already"
            raise EngineRefused(msg)
        self._parse(request.artifact_id)
        part, reason = self.refuses_artifact
        if part and part in request.artifact_id:
            raise EngineRefused(reason)
        if request.savepoint_path:
            self._check_restore(request.savepoint_path)
        tasks = 2 * request.parallelism
        name = request.settings.get(SETTING_NAME, request.artifact_id)
        plan = plan_at(request.parallelism)
        status = EngineJob(request.engine_job_id, name, "CREATED", 0, tasks, plan=plan)
        self.jobs[request.engine_job_id] = FakeJob(request, status, self.looks_until_up)
        self._leave("start")

    def job(self, engine_job_id: str) -> EngineJob:
        """A look at a job, which brings it one step on."""
        self._enter("job")
        job = self._known(engine_job_id)
        if job.status.state == "CREATED":
            self._come_up(job)
        elif job.status.state == "RUNNING" and SETTING_UNTIL in job.request.settings:
            job.come_nearer(self.looks_until_end)
        elif job.status.state == "CANCELLING":
            job.status = replace(job.status, state="CANCELED", tasks_running=0)
        return job.status

    def engine_plan(self, engine_job_id: str) -> Mapping[str, Any]:
        """What `operators` says."""
        self._enter("engine_plan")
        self._known(engine_job_id)
        return self.operators

    def limit_reading(
        self,
        engine_job_id: str,
        rows_per_second: float | None,
        times_real_time: float | None = None,
    ) -> None:
        """Note the limit."""
        self._enter("limit_reading")
        self._known(engine_job_id)
        self.limits[engine_job_id] = rows_per_second
        self.speeds[engine_job_id] = times_real_time
        self._leave("limit_reading")

    def cancel(self, engine_job_id: str) -> None:
        """Begin to cancel."""
        self._enter("cancel")
        job = self._known(engine_job_id)
        if job.status.state == "FINISHED":
            msg = f"job {engine_job_id} has finished already"
            raise EngineRefused(msg)
        if not job.status.has_ended:
            job.status = replace(job.status, state="CANCELLING")
        self._leave("cancel")

    def trigger_savepoint(self, engine_job_id: str, folder: str, trigger_id: str) -> None:
        """Begin a savepoint."""
        self._trigger("trigger_savepoint", engine_job_id, folder, trigger_id, stops=False)

    def stop(self, engine_job_id: str, folder: str, trigger_id: str, *, drain: bool) -> None:
        """Begin to stop with a savepoint."""
        self._trigger("stop", engine_job_id, folder, trigger_id, stops=True)

    def savepoint_status(self, engine_job_id: str, trigger_id: str) -> TriggerStatus:
        """A look at a savepoint, which brings it one step on."""
        self._enter("savepoint_status")
        trigger = self._triggers.get(trigger_id)
        if trigger is None:
            msg = f"there is no savepoint operation with trigger id {trigger_id}"
            raise UnknownTrigger(msg)
        if trigger.failure:
            return TriggerStatus(done=True, failure=trigger.failure)
        if trigger.looks_until_done > 0:
            trigger.looks_until_done -= 1
            return TriggerStatus(done=False)
        self._complete(trigger)
        return TriggerStatus(done=True, location=trigger.location)

    def savepoint_locations(self, engine_job_id: str) -> Sequence[str]:
        """Every completed savepoint of a job."""
        self._enter("savepoint_locations")
        name = self._known(engine_job_id).status.name
        return [path for path, found in self.savepoints.items() if found.job_name == name]

    def newest_snapshot(self, engine_job_id: str) -> str:
        """Its newest checkpoint."""
        self._enter("newest_snapshot")
        self._known(engine_job_id)
        return self.checkpoints.get(engine_job_id, "")

    def rescale(self, engine_job_id: str, parallelism: int, trigger_id: str) -> None:
        """Begin to change the parallelism."""
        self._enter("rescale")
        if not self.rescales:
            msg = "the engine cannot rescale a running job"
            raise Unsupported(msg)
        self._known(engine_job_id)
        rescale = FakeRescale(engine_job_id, parallelism, self.looks_until_done)
        self._rescales.setdefault(trigger_id, rescale)
        self._leave("rescale")

    def rescale_status(self, engine_job_id: str, trigger_id: str) -> TriggerStatus:
        """A look at a rescale, which brings it one step on."""
        self._enter("rescale_status")
        if trigger_id not in self._rescales:
            msg = f"there is no rescale with trigger id {trigger_id}"
            raise UnknownTrigger(msg)
        rescale = self._rescales[trigger_id]
        if rescale.failure:
            return TriggerStatus(done=True, failure=rescale.failure)
        if rescale.looks_until_done > 0:
            rescale.looks_until_done -= 1
            return TriggerStatus(done=False)
        self.jobs[engine_job_id].resize(rescale.parallelism)
        return TriggerStatus(done=True)

    # What the calls share.

    def _known(self, engine_job_id: str) -> FakeJob:
        if engine_job_id not in self.jobs:
            msg = f"job {engine_job_id} not found"
            raise UnknownJob(msg)
        return self.jobs[engine_job_id]

    def _come_up(self, job: FakeJob) -> None:
        others = sum(
            other.request.parallelism
            for other in self.jobs.values()
            if other.status.state == "RUNNING"
        )
        wanted, free = job.request.parallelism, self.slots - others
        if wanted > free:
            job.status = replace(job.status, waiting_for=f"waits for {wanted} slots, {free} free")
        elif job.looks_until_up > 0:
            job.looks_until_up -= 1
        else:
            total = job.status.tasks_total
            job.status = replace(job.status, state="RUNNING", tasks_running=total, waiting_for="")
            self.complete_checkpoint(job.request.engine_job_id, 1)

    def _trigger(
        self, call: str, engine_job_id: str, folder: str, trigger_id: str, *, stops: bool
    ) -> None:
        self._enter(call)
        job = self._known(engine_job_id)
        if job.status.state != "RUNNING":
            msg = f"job {engine_job_id} is {job.status.state}: a savepoint needs a running job"
            raise EngineRefused(msg)
        location = f"{folder}/savepoint-{len(self.savepoints) + len(self._triggers) + 1}"
        trigger = FakeTrigger(engine_job_id, location, stops, self.looks_until_done)
        self._triggers.setdefault(trigger_id, trigger)
        self._leave(call)

    def _complete(self, trigger: FakeTrigger) -> None:
        if trigger.location in self.savepoints or trigger.failure:
            return
        job = self.jobs[trigger.engine_job_id]
        summary = SavepointSummary(
            location=trigger.location,
            job_name=job.status.name,
            checkpoint_id=len(self.savepoints) + 1,
            size_bytes=4096,
            event_time=self.event_time,
            source_positions={"flights": self.splits},
            created_ms=None,
            contents=CONTENTS,
        )
        self.savepoints[trigger.location] = summary
        if trigger.stops:
            job.status = replace(job.status, state="FINISHED", tasks_running=0)


_engines: dict[str, FakeEngine] = {}


def engine(name: str) -> FakeEngine:
    """The engine behind `fake://<name>`, made when first asked for."""
    return _engines.setdefault(name, FakeEngine())


def forget(name: str) -> None:
    """End that engine."""
    _engines.pop(name, None)
