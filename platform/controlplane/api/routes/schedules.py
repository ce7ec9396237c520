"""Schedules that take savepoints."""

from __future__ import annotations

from ninja import Router, Status

from controlplane.access.lookup import job_for, schedule_for
from controlplane.api.auth import ApiRequest
from controlplane.api.schema.snapshots import ScheduleChange, ScheduleIn, ScheduleOut
from controlplane.snapshots import schedule_actions as actions
from controlplane.snapshots.models import SavepointSchedule
from controlplane.snapshots.queries import schedules
from controlplane.snapshots.schedule_options import ScheduleOptions

router = Router(tags=["schedules"])


@router.get("jobs/{name}/schedules", response=list[ScheduleOut], summary="List schedules")
def list_schedules(request: ApiRequest, name: str) -> list[SavepointSchedule]:
    """Those of a job, the next due first; there are few."""
    return list(schedules(job_for(request.auth, name)))


@router.post("jobs/{name}/schedules", response={201: ScheduleOut}, summary="Add a schedule")
def add(request: ApiRequest, name: str, body: ScheduleIn) -> Status[SavepointSchedule]:
    """Take savepoints regularly. Operator."""
    job = job_for(request.auth, name)
    given = body.dict()
    every_minutes = given.pop("every_minutes")
    options = ScheduleOptions(**given)
    return Status(201, actions.add_schedule(job, request.auth, every_minutes, options=options))


@router.patch("schedules/{schedule_id}", response=ScheduleOut, summary="Change a schedule")
def change(request: ApiRequest, schedule_id: int, body: ScheduleChange) -> SavepointSchedule:
    """Let it rest, or go on from now. Operator."""
    schedule = schedule_for(request.auth, schedule_id)
    return actions.set_schedule_enabled(schedule, request.auth, enabled=body.enabled)


@router.delete("schedules/{schedule_id}", response={204: None}, summary="Remove a schedule")
def remove(request: ApiRequest, schedule_id: int) -> Status[None]:
    """The savepoints that it took stay. Operator."""
    actions.remove_schedule(schedule_for(request.auth, schedule_id), request.auth)
    return Status(204, None)
