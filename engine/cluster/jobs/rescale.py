"""A change of a running job's parallelism, as one operation that survives every process.

    asked ──suspended by a checkpoint──▶ switched ──every subtask runs──▶ done
      │ the checkpoint fails                │ the job cannot start so
      ▼                                     ▼
    the job runs on as it was            it goes back, and starts again as it was

What is asked for, and what was before, is a setting of the job; so is the parallelism itself. One
write changes both: a job manager that is killed finds the job at the one or the other, and goes on
with a rescale that it finds: the job has to start again anyway.

Order    the checkpoint's barrier says SUSPEND: sources read nothing after it, so no row is read
         twice, and what it staged is committed before the job starts again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Protocol

from engine.checkpoint.coordination.effects import Operation, OperationStatus, SnapshotRequest
from engine.elements import AfterBarrier, SnapshotKind
from engine.errors import ConfigError, StorageError
from engine.graph.plan import Plan
from engine.graph.rescaling import Parallelism, of_all, parallelism_of, rescaled_plan
from engine.rest.errors import vertex_not_found
from engine.rest.model.requests import RescaleRequest

PARALLELISM = "headwater.parallelism"
"""A setting: "uid=2; other=4", by uid of the heads of vertices."""

RESCALE = "headwater.rescale"
"""A setting while a rescale is under way: what `Rescale.asked` writes."""

Settings = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Rescale:
    """What is asked for, and what was before."""

    trigger_id: str
    wanted: Parallelism
    former: Parallelism

    @classmethod
    def found_in(cls, settings: Settings) -> Rescale | None:
        """The one that is under way."""
        text = settings.get(RESCALE)
        return None if text is None else cls(**json.loads(text))

    def is_switched(self, settings: Settings) -> bool:
        """Whether the job has the new parallelism."""
        return parallelism_in(settings) == self.wanted

    def asked(self, settings: Settings) -> Settings:
        """The settings from the beginning on."""
        return {**settings, RESCALE: json.dumps(asdict(self))}

    def switched(self, settings: Settings) -> Settings:
        """The settings once the job is suspended."""
        return {**settings, PARALLELISM: setting_of(self.wanted)}

    def over(self, settings: Settings, present: Parallelism) -> Settings:
        """The settings at the end, at the one parallelism or the other."""
        left = {name: value for name, value in settings.items() if name != RESCALE}
        return {**left, PARALLELISM: setting_of(present)}

    def suspension(self) -> SnapshotRequest:
        """The checkpoint after which nothing is read until the job starts again."""
        return SnapshotRequest(self.trigger_id, SnapshotKind.CHECKPOINT, AfterBarrier.SUSPEND)

    def ended(self, failure: str | None) -> Operation:
        """What becomes of the operation."""
        request = SnapshotRequest(self.trigger_id, SnapshotKind.CHECKPOINT)
        status = OperationStatus.COMPLETED if failure is None else OperationStatus.FAILED
        return Operation(request, status, failure=failure)


def parallelism_in(settings: Settings) -> Parallelism:
    """What the setting says; nothing for vertices that are as they were built. Raises ConfigError.

    >>> parallelism_in({"headwater.parallelism": "flights=4; daily=2"})
    {'flights': 4, 'daily': 2}
    """
    wanted = {}
    for part in settings.get(PARALLELISM, "").split(";"):
        if not part.strip():
            continue
        uid, _, number = (piece.strip() for piece in part.rpartition("="))
        if not (uid and number.isdecimal()):
            msg = f"setting {PARALLELISM} must be uid=number: got {part!r}; pass e.g. 'flights=4'"
            raise ConfigError(msg)
        wanted[uid] = int(number)
    return wanted


def setting_of(wanted: Parallelism) -> str:
    """Write what `parallelism_in` reads."""
    return "; ".join(f"{uid}={number}" for uid, number in wanted.items())


def wanted_of(request: RescaleRequest, plan: Plan) -> Parallelism:
    """The parallelism of every vertex that a request comes to. Raises NotFound."""
    if request.parallelism is not None:
        return of_all(plan, request.parallelism)
    heads = {vertex.id: vertex.operators[0].uid for vertex in plan.vertices}
    for vertex in request.vertices:
        if vertex not in heads:
            raise vertex_not_found(vertex)
    named = {heads[vertex]: number for vertex, number in request.vertices.items()}
    return {**parallelism_of(plan), **named}


class SettingsHolder(Protocol):
    """The job, whose settings say at which parallelism it runs."""

    @property
    def settings(self) -> Settings:
        """As they are stored."""

    def put_settings(self, settings: Settings, *, soon: bool = False) -> None:
        """Store others. Raises StorageError, unless `soon` is enough."""


class Rescaling:
    """The parallelism of one job, and the rescale that is under way, if any."""

    def __init__(
        self,
        built: Plan,
        job: SettingsHolder,
        on_ended: Callable[[Operation], None],
        count: int = 0,
    ) -> None:
        """`built`: the plan as the job file made it. Raises ConfigError for a wrong setting."""
        self.plan = rescaled_plan(built, parallelism_in(job.settings))
        """At the present parallelism."""
        self.pending = Rescale.found_in(job.settings)
        self.suspended = self.pending is not None
        """The next attempt shall have the new parallelism: also after a job manager was lost."""
        self.count = count
        """How often it was changed."""
        self._built = built
        self._job = job
        self._on_ended = on_ended
        self._going_back: str | None = None

    @property
    def is_switched(self) -> bool:
        """Whether an attempt at the new parallelism is to come, or has begun and does not run."""
        return self.pending is not None and self.pending.is_switched(self._job.settings)

    def begin(self, trigger_id: str, wanted: Parallelism) -> Rescale:
        """A rescale is under way from now on. Raises StorageError."""
        pending = Rescale(trigger_id, dict(wanted), parallelism_of(self.plan))
        self._job.put_settings(pending.asked(self._job.settings))
        self.pending = pending
        return pending

    def on_suspended(self, operation: Operation) -> bool:
        """What became of the checkpoint; False when it was not one of a rescale."""
        if operation.request.then is not AfterBarrier.SUSPEND:
            return False
        if operation.status is OperationStatus.COMPLETED:
            self.suspended = True
        else:
            self._end(f"rescale failed, the job goes on as it was: {operation.failure}")
        return True

    def on_start(self) -> None:
        """An attempt is about to begin, and none is left of the one before."""
        pending = self.pending
        if pending is None or not self.suspended:
            return
        if self._going_back is not None:
            self.plan = rescaled_plan(self._built, pending.former)
            self._end(self._going_back)
        elif not self.is_switched:
            self._switch(pending)

    def _switch(self, pending: Rescale) -> None:
        try:
            self._job.put_settings(pending.switched(self._job.settings))
        except StorageError as error:
            self._end(f"rescale failed, the job goes on as it was: {error}")
        else:
            self.plan = rescaled_plan(self._built, pending.wanted)

    def on_running(self) -> bool:
        """Every subtask processes; whether that ends a rescale."""
        switched = self.is_switched
        if switched:
            self.count += 1
            self._end(None)
        return switched

    def go_back(self, reason: str) -> bool:
        """The job cannot start at the new parallelism; False when no such start is under way."""
        if not self.is_switched:
            return False
        if self._going_back is None:
            self._going_back = f"rescale failed, the job goes on as it was: {reason}"
        return True

    def give_up(self, reason: str) -> None:
        """The job has ended."""
        if self.pending is not None:
            self._end(f"rescale was given up: {reason}")

    def _end(self, failure: str | None) -> None:
        pending, self.pending = self.pending, None
        self.suspended, self._going_back = False, None
        if pending is not None:
            settings = pending.over(self._job.settings, parallelism_of(self.plan))
            # Should it be lost: the next job manager changes to what is wanted once more.
            self._job.put_settings(settings, soon=True)
            self._on_ended(pending.ended(failure))
