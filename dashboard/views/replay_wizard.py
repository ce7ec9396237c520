"""A new replay in five steps, each an address; the last one starts it.

    ?job=flights&step=restore&sp=7&version=2&parallelism=2&sink=shadow&drop=late

Each step is a form that is sent by GET, so that reload and back work, and no script is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from controlplane.access.errors import Refused
from controlplane.access.lookup import (
    job_for,
    replay_for,
    require,
    savepoint_for,
    version_for,
    visible_jobs,
)
from controlplane.access.models import Role
from controlplane.jobs.models import Job, JobVersion
from controlplane.jobs.output_page import sink_places
from controlplane.jobs.queries import JobFrame, job_frame
from controlplane.moments import moment
from controlplane.replay import actions
from controlplane.replay.limits import Limit
from controlplane.replay.positions import EARLIEST, Positions, checked_positions
from controlplane.replay.preflight import check_fit
from controlplane.replay.queries import ReplayChoices, replay_choices
from controlplane.replay.wizard import STEPS, Plan, Restore, plan_of, restore_of, savepoint_before
from controlplane.snapshots.axis import axis
from controlplane.snapshots.models import Savepoint
from dashboard.answers import checked, started
from dashboard.forms import agreed
from dashboard.replay_forms import TERMS, PlanForm, ReplayForm
from dashboard.views.requests import UserRequest

CONSENTS = ("drop", "accept")
FIELDS = {
    "start": ("sp",),
    "code": ("version", "parallelism", "limit", "until", *TERMS, "from", "time"),
    "sinks": ("sink",),
    "restore": CONSENTS,
    "review": (),
}
"""What each step asks."""


@dataclass(frozen=True, slots=True)
class Address:
    """The choices as the query of an address."""

    pairs: tuple[tuple[str, str], ...]

    def of(self, step: str) -> str:
        """The same choices at a step."""
        return "?" + urlencode([*self.pairs, ("step", step)])

    def without(self, step: str) -> list[tuple[str, str]]:
        """What the form of a step carries along; consent is given anew after every change."""
        asked = {*FIELDS[step], *CONSENTS} if step != "review" else set()
        return [pair for pair in self.pairs if pair[0].partition(":")[0] not in asked]

    def savepoint(self, number: int) -> str:
        """The first step with another savepoint."""
        pairs = [pair for pair in self.pairs if pair[0] not in {"sp", *CONSENTS}]
        return "?" + urlencode([*pairs, ("sp", str(number)), ("step", "start")])


@login_required
def new(request: UserRequest) -> HttpResponse:
    """One step of the plan; or start it."""
    if request.method == "POST":
        return _start(request)
    name = request.GET.get("job", "")
    if not name:
        jobs = visible_jobs(request.user)
        return render(request, "replays/choose_job.html", {"section": "replays", "jobs": jobs})
    job = job_for(request.user, name)
    frame = job_frame(job, request.user)
    context = {"section": "replays", "job": job, "frame": frame}
    return render(request, "replays/new.html", context | _planned(request, job, frame))


@login_required
@require_safe
def clone(request: UserRequest, replay_id: int) -> HttpResponse:
    """The last step of a plan like that of a replay; consent to losses is given anew."""
    replay = replay_for(request.user, replay_id)
    require(request.user, replay.job, Role.OPERATOR)
    check_fit(replay.savepoint, replay.version)
    address = Address(_pairs(replay.job, plan_of(replay), "event"))
    return redirect(reverse("dashboard:new_replay") + address.of("review"))


def _planned(request: UserRequest, job: Job, frame: JobFrame) -> dict[str, Any]:
    """What the page shows of the plan; nothing to who may not start it."""
    form = PlanForm(request.GET)
    form.is_valid()
    asked = form.cleaned_data
    choices = replay_choices(job, asked.get("sp"), asked.get("version"))
    savepoint, version = choices.savepoint, choices.version
    if not frame.may_operate or savepoint is None or version is None:
        return {"choices": choices}
    faults = {name: str(errors[0]) for name, errors in form.errors.items()}
    if asked.get("sp") not in {None, savepoint.pk}:
        faults["sp"] = f"savepoint {asked['sp']} is no choice: take one of these"
    savepoint = _before(choices, asked, faults) or savepoint
    try:
        positions = checked_positions(savepoint, _positions(savepoint, request.GET))
    except Refused as refused:
        faults["from"], positions = refused.message, {}
    plan = _plan(savepoint, version, asked, request.GET, positions)
    try:
        plan.check()
    except Refused as refused:
        faults["until"] = refused.message
    step, restore = _step(asked.get("step") or "start", plan, faults)
    pairs = _pairs(job, plan, asked.get("clock") or "event")
    live_ms = frame.figures.get("event_ms")
    shown = _shown(step, plan, choices, asked, Address(pairs), live_ms)
    return shown | {
        "choices": choices,
        "plan": plan,
        "step": step,
        "restore": restore,
        "fault": next((faults[name] for name in _asked_at(step) if name in faults), ""),
        "given": request.GET,
        "again_ms": plan.again_ms(live_ms),
        "sinks": sink_places(frame.run) if step == "sinks" else ((), ""),
    }


def _before(
    choices: ReplayChoices, asked: dict[str, Any], faults: dict[str, str]
) -> Savepoint | None:
    """With a time asked for, the savepoint before it."""
    if (at := asked.get("at")) is None:
        return None
    by_event_time = asked.get("clock") != "wall"
    try:
        return savepoint_before(choices.job, choices.rows, at, by_event_time=by_event_time)
    except Refused as refused:
        faults["at"] = refused.message
        return None


def _plan(
    savepoint: Savepoint,
    version: JobVersion,
    asked: dict[str, Any],
    given: QueryDict,
    positions: Positions,
) -> Plan:
    return Plan(
        savepoint=savepoint,
        version=version,
        parallelism=asked.get("parallelism") or int(savepoint.job.settings.get("parallelism", 1)),
        limit=asked.get("limit") or Limit(),
        until=asked.get("until"),
        discards=asked.get("sink") == "none",
        drop=tuple(agreed(given, "drop")),
        accept=tuple(agreed(given, "accept")),
        positions=positions,
        tuning=asked.get("tuning") or actions.AS_EVER,
    )


def _positions(savepoint: Savepoint, given: QueryDict) -> dict[str, str]:
    """Where sources begin: `from:UID` is earliest or time, which `time:UID` then has."""
    found = {}
    for uid in savepoint.source_positions:
        match given.get(f"from:{uid}"):
            case "earliest":
                found[uid] = EARLIEST
            case "time":
                found[uid] = given.get(f"time:{uid}", "").strip()[:40]
    return found


def _position_pairs(positions: Positions) -> Iterator[tuple[str, str]]:
    for uid, where in positions.items():
        yield f"from:{uid}", EARLIEST if where == EARLIEST else "time"
        if where != EARLIEST:
            yield f"time:{uid}", f"{datetime.fromisoformat(where):%Y-%m-%d %H:%M:%S}"


def _term_pairs(plan: Plan) -> Iterator[tuple[str, str]]:
    usual = asdict(actions.AS_EVER)
    for name, value in asdict(plan.tuning).items():
        if value != usual[name]:
            yield name, f"{value:.15g}"


def _asked_at(step: str) -> tuple[str, ...]:
    return ("at", *FIELDS[step]) if step == "start" else FIELDS[step]


def _step(asked: str, plan: Plan, faults: dict[str, str]) -> tuple[str, Restore | None]:
    """The step that is asked for, or the first before it that is not settled."""
    for step in STEPS[: STEPS.index(asked) + 1]:
        if any(name in faults for name in _asked_at(step)):
            return step, None
    if asked not in {"restore", "review"}:
        return asked, None
    restore = restore_of(plan)
    return (asked if restore.ok else "restore"), restore


def _pairs(job: Job, plan: Plan, clock: str) -> tuple[tuple[str, str], ...]:
    limit, until = str(plan.limit), plan.until
    return (
        ("job", job.name),
        ("sp", str(plan.savepoint.pk)),
        ("version", str(plan.version.number)),
        ("parallelism", str(plan.parallelism)),
        *((("limit", limit),) if limit else ()),
        *((("until", f"{until:%Y-%m-%d %H:%M:%S}"),) if until is not None else ()),
        *_term_pairs(plan),
        ("sink", "none" if plan.discards else "shadow"),
        *((("clock", clock),) if clock != "event" else ()),
        *_position_pairs(plan.positions),
        *(("drop", key) for key in plan.drop),
        *(("accept", uid) for uid in plan.accept),
    )


def _shown(
    step: str,
    plan: Plan,
    choices: ReplayChoices,
    asked: dict[str, Any],
    address: Address,
    live_ms: int | None,
) -> dict[str, Any]:
    """The way through the steps, and the axis of the first."""
    place = STEPS.index(step)
    shown: dict[str, Any] = {
        "steps": [(name, address.of(name), at < place) for at, name in enumerate(STEPS)],
        "carried": address.without(step),
        "back": address.of(STEPS[place - 1]) if place else "",
    }
    if step == "start":
        by_event = asked.get("clock") != "wall"
        shown["axis"] = axis(
            choices.job,
            choices.rows,
            timezone.now(),
            by_event_time=by_event,
            to=address.savepoint,
            reach=None if live_ms is None else moment(live_ms),
            chosen=plan.savepoint.pk,
        )
        shown["chosen"] = address.savepoint(plan.savepoint.pk)
    return shown


def _start(request: UserRequest) -> HttpResponse:
    asked = checked(ReplayForm(request.POST))
    savepoint = savepoint_for(request.user, asked["savepoint"])
    replay, operation = actions.start_replay(
        savepoint,
        version_for(savepoint.job, asked["version"]),
        request.user,
        parallelism=asked["parallelism"] or int(savepoint.job.settings.get("parallelism", 1)),
        idempotency_key=asked["idempotency_key"],
        until=asked["until"],
        discards=asked["discards"],
        limit=asked["limit"],
        drop=agreed(request.POST, "drop"),
        accept_missing=agreed(request.POST, "accept"),
        positions=_positions(savepoint, request.POST),
        tuning=asked["tuning"],
    )
    return started(request, operation, reverse("dashboard:replay", args=[replay.pk]), move=True)
