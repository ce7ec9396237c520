"""Files without a row, and rows without files: the catalogue against what is stored.

    folder of savepoints ─ rows ─▶ StrayFolder    nobody knows them: adopt one, or delete it
    rows ─ folder of savepoints ─▶ missing_since  the files are gone: such a row starts nothing

Guarantee   A folder that an operation is writing to just now, or that was written to a moment ago,
            is no stray. When the folder cannot be listed, what was found before stands, and the
            page says so.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from controlplane.access.errors import Refused, conflict
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.backends.errors import EngineAway, EngineError, EngineRefused, NoSnapshot
from controlplane.backends.local_storage import tidy
from controlplane.backends.models import Cluster
from controlplane.backends.registry import client_for
from controlplane.backends.snapshot_contract import StoredFolder
from controlplane.jobs.models import Job
from controlplane.moments import moment
from controlplane.operations.models import UNFINISHED, Operation
from controlplane.snapshots import lifecycle
from controlplane.snapshots.models import ENDED, Savepoint, StorageScan, StrayFolder

SETTLED = timedelta(minutes=10)
"""Younger files may belong to a savepoint whose row is a moment late."""
ABANDONED = timedelta(hours=2)
"""No operation lasts so long: nothing will be written to a folder that is empty."""


def scan_all(now: datetime) -> None:
    """Scan what every cluster stores that was not taken out."""
    for cluster in Cluster.present.all():
        scan(cluster, now)


def scan(cluster: Cluster, now: datetime) -> StorageScan:
    """Compare the catalogue of one cluster's jobs with what is stored."""
    root, engine = Path(settings.HEADWATER_SAVEPOINTS), client_for(cluster)
    try:
        found = engine.stored(root)
        gone = _gone(cluster, root, {one.location for one in found if one.is_complete})
    except EngineError as error:
        scanned, _ = StorageScan.objects.update_or_create(
            cluster=cluster, defaults={"at": now, "problem": error.message}
        )
        return scanned
    tidy(root, now - ABANDONED)
    with transaction.atomic():
        _note_missing(cluster, gone, now)
        _note_strays(cluster, found, now)
        scanned, _ = StorageScan.objects.update_or_create(
            cluster=cluster, defaults={"at": now, "problem": "", "folders": len(found)}
        )
    return scanned


def clear_stray(stray: StrayFolder, actor: User, reason: str = "") -> None:
    """Delete files that no row is about. Operator of the job that the folder is named after."""
    require(actor, _owner(stray), Role.OPERATOR)
    root = Path(settings.HEADWATER_SAVEPOINTS)
    known = Savepoint.objects.filter(location=stray.location).exclude(status__in=ENDED)
    if known.exists():
        msg = f"folder {stray.location} is in a catalogue by now: scan again"
        raise conflict(msg)
    if stray.is_complete:
        msg = f"folder {stray.location} is a complete savepoint: adopt it, then delete it as one"
        raise conflict(msg)
    try:
        client_for(stray.cluster).clear(stray.location, root)
    except EngineAway as error:
        raise Refused(502, "engine", error.message) from error
    except EngineRefused as error:
        raise conflict(error.message) from error
    with transaction.atomic():
        before = {"size_bytes": stray.size_bytes}
        record(actor, "stray.clear", stray.location, job=stray.job, reason=reason, before=before)
        stray.delete()


def rescan(job: Job, actor: User) -> StorageScan:
    """Scan now what the job's cluster stores. Operator."""
    require(actor, job, Role.OPERATOR)
    return scan(job.cluster, timezone.now())


def _owner(stray: StrayFolder) -> Job:
    if stray.job is None:
        msg = f"folder {stray.location} is named after no job: remove it on the machine itself"
        raise conflict(msg)
    return stray.job


def _kept(cluster: Cluster) -> list[Savepoint]:
    rows = Savepoint.objects.filter(job__cluster=cluster).exclude(status__in=ENDED)
    return list(rows.exclude(location="").only("pk", "location", "missing_since"))


def _gone(cluster: Cluster, root: Path, listed: Iterable[str]) -> set[int]:
    """Rows whose files are gone; what lies elsewhere is asked for one by one."""
    present, engine = {_plain(place) for place in listed}, client_for(cluster)
    gone = set()
    for row in _kept(cluster):
        place = _plain(row.location)
        if place in present:
            continue
        if place.startswith(f"{root}/"):
            gone.add(row.pk)
            continue
        try:
            engine.savepoint(row.location)
        except NoSnapshot:
            gone.add(row.pk)
        except EngineRefused:
            continue  # there is something: a verification says what is wrong with it
    return gone


def _note_missing(cluster: Cluster, gone: set[int], now: datetime) -> None:
    for row in _kept(cluster):
        if (row.pk in gone) != (row.missing_since is not None):
            lifecycle.seen(row, now if row.pk in gone else None)


def _note_strays(cluster: Cluster, found: Iterable[StoredFolder], now: datetime) -> None:
    known = {
        _plain(place)
        for place in Savepoint.objects.exclude(status__in=ENDED).values_list("location", flat=True)
    }
    busy = {one.hex[:12] for one in _unfinished()}
    jobs = {job.name: job for job in Job.objects.all()}
    StrayFolder.objects.filter(cluster=cluster).exclude(
        location__in=[one.location for one in found]
    ).delete()
    no_strays = []
    for one in found:
        changed_at = moment(one.changed_ms)
        job = jobs.get(_part(one.location, -3))
        is_ours = job is None or job.cluster_id == cluster.pk
        is_known = _plain(one.location) in known or _part(one.location, -2) in busy
        if is_known or not is_ours:
            no_strays.append(one.location)
        elif now - changed_at >= SETTLED:
            _note_stray(cluster, one, {"job": job, "changed_at": changed_at}, now)
    StrayFolder.objects.filter(cluster=cluster, location__in=no_strays).delete()


def _note_stray(
    cluster: Cluster, one: StoredFolder, more: Mapping[str, object], now: datetime
) -> None:
    sizes = {"is_complete": one.is_complete, "size_bytes": one.size_bytes}
    StrayFolder.objects.update_or_create(
        cluster=cluster,
        location=one.location,
        defaults=sizes | dict(more),
        create_defaults=sizes | dict(more) | {"found_at": now},
    )


def _unfinished() -> Iterable[uuid.UUID]:
    return Operation.objects.filter(state__in=UNFINISHED).values_list("pk", flat=True)


def _plain(location: str) -> str:
    return location.removeprefix("file://").rstrip("/")


def _part(location: str, place: int) -> str:
    parts = Path(_plain(location)).parts
    return parts[place] if len(parts) >= -place else ""
