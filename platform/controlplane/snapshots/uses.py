"""Where savepoints are used: what must not be deleted, and what only is history.

    needed    a run that could restart from it, a stopped job, an open replay, a rollback, an
              operation under way, the catalogue of another job, any row that refers to it
    history   runs and replays that were once started from it

Cost     a fixed number of queries, however many savepoints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Exists, ForeignObjectRel, OuterRef, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from controlplane.jobs.models import TERMINAL, Job, Run
from controlplane.operations.models import UNFINISHED, Operation
from controlplane.replay.models import ENDED as ENDED_REPLAYS
from controlplane.replay.models import HANDING_OVER, Replay
from controlplane.snapshots.models import ENDED, Checkpoint, Savepoint

KNOWN = frozenset({(Run, "restored_from"), (Replay, "savepoint"), (Replay, "old_savepoint")})
"""References whose need is worked out below."""

READS = frozenset({"dispose"})
"""Operations that name a savepoint and do not need it."""


@dataclass(frozen=True, slots=True)
class Use:
    """One use of one savepoint."""

    savepoint: int
    name: str
    """Of what uses it, in a few words: `run 12`."""
    need: str = ""
    """Why it must stay, in one sentence; empty when that is only history."""


Uses = Mapping[int, tuple[Use, ...]]


def uses_of(jobs: Sequence[Job], only: int | None = None) -> Uses:
    """Every use of the savepoints of these jobs, by savepoint; at less cost of `only` one."""
    found: dict[int, list[Use]] = defaultdict(list)
    keys = [job.pk for job in jobs]
    kept = _kept(keys)
    asked = [one for one in kept if only in {None, one.pk}]
    alive = dict(_alive(keys))
    for uses in (
        _by_runs(asked, alive),
        _by_stopped_jobs(jobs, kept, alive),
        _by_rollback(kept),
        _by_replays(asked),
        _by_operations(keys),
        _by_other_jobs(asked),
        _by_other_rows(asked),
    ):
        for use in uses:
            found[use.savepoint].append(use)
    return {key: tuple(uses) for key, uses in found.items()}


def needs(uses: Uses, savepoint: int) -> tuple[str, ...]:
    """Why one must stay."""
    return tuple(use.need for use in uses.get(savepoint, ()) if use.need)


class Kept(NamedTuple):
    """What uses are found by."""

    pk: int
    job_id: int
    location: str
    origin: str


def _kept(job_ids: Iterable[int]) -> list[Kept]:
    """The oldest state first. As plain values: rows are wide, and every deletion asks anew."""
    rows = Savepoint.objects.filter(job__in=job_ids).exclude(status__in=ENDED)
    oldest = rows.order_by(Coalesce("taken_at", "created_at"), "pk")
    return [Kept(*row) for row in oldest.values_list(*Kept._fields)]


def _alive(job_ids: Iterable[int]) -> Iterator[tuple[int, Run]]:
    runs = Run.objects.filter(job__in=job_ids, purpose=Run.Purpose.LIVE).defer("plan")
    for run in runs.exclude(state__in=TERMINAL):
        yield run.job_id, run


def _by_runs(kept: Sequence[Kept], alive: Mapping[int, Run]) -> Iterator[Use]:
    own = Checkpoint.objects.filter(
        run=OuterRef("pk"), status=Checkpoint.Status.COMPLETED, kind=Checkpoint.Kind.CHECKPOINT
    )
    runs = Run.objects.filter(restored_from__in=[one.pk for one in kept]).defer("plan")
    for run in runs.annotate(has_own=Exists(own)).order_by("pk"):
        key, name = run.restored_from_id or 0, f"run {run.pk}"
        current = alive.get(run.job_id)
        if not run.is_terminal and not run.__dict__["has_own"]:
            yield Use(key, name, f"{name} started from it and has no checkpoint of its own yet")
        elif current is not None and current.pk == run.pk:
            yield Use(key, name, f"{name}, which runs now, started from it: going back needs it")
        elif run.purpose == Run.Purpose.LIVE:
            yield Use(key, name)


def _by_stopped_jobs(
    jobs: Sequence[Job], kept: Sequence[Kept], alive: Mapping[int, Run]
) -> Iterator[Use]:
    """A job that does not run would start from its newest, or from the one that it stopped with."""
    for job in jobs:
        if job.pk in alive:
            continue
        mine = [one for one in kept if one.job_id == job.pk and one.location]
        stops = [one for one in mine if one.origin == Savepoint.Origin.STOP]
        for one in {one.pk: one for one in (*mine[-1:], *stops[-1:])}.values():
            yield Use(one.pk, f"{job.name}, stopped", f"{job.name} is stopped and starts from it")


def _by_rollback(kept: Sequence[Kept]) -> Iterator[Use]:
    newest = {one.job_id: one for one in kept if one.origin == Savepoint.Origin.UPGRADE}
    for one in newest.values():
        yield Use(one.pk, "rollback", "the last upgrade can be taken back to it")


def _by_replays(kept: Sequence[Kept]) -> Iterator[Use]:
    keys = [one.pk for one in kept]
    about = Q(savepoint__in=keys) | Q(old_savepoint__in=keys)
    for replay in Replay.objects.filter(about).order_by("number"):
        is_open = replay.status not in ENDED_REPLAYS
        need = f"replay {replay.name} is not over and started from it" if is_open else ""
        yield Use(replay.savepoint_id, replay.name, need)
        if replay.old_savepoint_id:
            yield Use(replay.old_savepoint_id, replay.name, _goes_back(replay))


def _goes_back(replay: Replay) -> str:
    """Why the old version's savepoint must stay; nothing does once its time is over."""
    until = replay.back_until
    if replay.status == Replay.Status.PROMOTED and until is not None:
        text = f"replay {replay.name} can be rolled back to it until {until:%d %b %Y %H:%M} UTC"
        return text if timezone.now() < until else ""
    goes_back = replay.status in HANDING_OVER
    return f"replay {replay.name} can be rolled back to it" if goes_back else ""


def _by_operations(job_ids: Iterable[int]) -> Iterator[Use]:
    running = Operation.objects.filter(job__in=job_ids, state__in=UNFINISHED)
    for one in running.exclude(kind__in=READS):
        name = one.kind.replace("_", " ")
        for key in {*_named(one.params), *_named(one.result)}:
            yield Use(key, name, f"{name} is under way and needs it")


def _named(values: Mapping[str, Any]) -> Iterator[int]:
    for name, value in values.items():
        if "savepoint" in name and isinstance(value, int) and not isinstance(value, bool):
            yield value


def _by_other_jobs(kept: Sequence[Kept]) -> Iterator[Use]:
    """The same folder may be in the catalogue of several jobs."""
    mine: dict[str, list[Kept]] = defaultdict(list)
    for one in kept:
        mine[one.location].append(one)
    others = Savepoint.objects.filter(location__in=[place for place in mine if place])
    columns = "job_id", "location", "job__name"
    for job_id, location, name in others.exclude(status__in=ENDED).values_list(*columns):
        for one in mine[location]:
            if one.job_id != job_id:
                yield Use(one.pk, f"catalogue of {name}", f"it is in the catalogue of {name} too")


def _by_other_rows(kept: Sequence[Kept]) -> Iterator[Use]:
    """Whatever else refers to a savepoint needs it, until this file says better."""
    keys = [one.pk for one in kept]
    # Hidden ones too: a field that wants no name on this side refers to it all the same.
    for relation in Savepoint._meta.get_fields(include_hidden=True):
        if not isinstance(relation, ForeignObjectRel):
            continue
        model, name = relation.related_model, relation.field.name
        if (model, name) in KNOWN or isinstance(model, str):
            continue
        rows = model._default_manager.filter(**{f"{name}__in": keys})
        for key in rows.values_list(name, flat=True):
            label = str(model._meta.verbose_name)
            yield Use(key, label, f"a {label} refers to it")
