"""What people do to jobs: each checks the role, writes in one transaction, and is audited.

What they do to the run of a job is in `running.py`, and can be had from here as well.

Errors   Refused, with one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings as conf
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Max
from redis import RedisError

from controlplane.access.errors import Refused, invalid
from controlplane.access.lookup import require, require_in
from controlplane.access.models import Role, Team
from controlplane.audit.record import record
from controlplane.backends.models import Cluster
from controlplane.jobs import artifacts
from controlplane.jobs.models import Job, JobVersion
from controlplane.jobs.placement import check_place, place_for
from controlplane.jobs.running import (
    cancel,
    deploy,
    newest_version,
    rescale,
    rollback,
    stop,
    upgrade,
)
from controlplane.jobs.settings import settings_from
from controlplane.live.control import send_line

__all__ = [
    "add_version",
    "cancel",
    "change_settings",
    "create_job",
    "deploy",
    "newest_version",
    "rescale",
    "rollback",
    "send_control",
    "stop",
    "upgrade",
]

RESERVED_NAMES = frozenset({"deploy", "new"})


def create_job(
    name: str,
    team: Team,
    actor: User,
    filename: str,
    content: bytes,
    settings: Mapping[str, Any] | None = None,
    note: str = "",
    cluster: Cluster | None = None,
) -> Job:
    """A job with its first version; it is not started. Needs the operator role."""
    require_in(actor, team, Role.OPERATOR)
    checked = settings_from(settings or {})
    _check_name(name)
    artifact = artifacts.store(filename, content)
    if cluster is not None:
        check_place(artifact.filename, cluster)
    try:
        with transaction.atomic():
            job = Job.objects.create(
                name=name,
                team=team,
                cluster=cluster or place_for(artifact.filename),
                settings=checked.as_json(),
                created_by=actor,
            )
            _create_version(job, actor, artifact, note)
            after = {"team": team.name, "settings": job.settings}
            record(actor, "job.create", name, job=job, after=after)
    except IntegrityError:
        msg = f"job name {name} is taken: choose another"
        raise invalid(msg, "name") from None
    return job


@transaction.atomic
def add_version(job: Job, actor: User, filename: str, content: bytes, note: str = "") -> JobVersion:
    """Another version of a job; nothing is started. Needs the operator role."""
    require(actor, job, Role.OPERATOR)
    artifact = artifacts.store(filename, content)
    check_place(artifact.filename, job.cluster)
    version = _create_version(job, actor, artifact, note)
    after = {"version": version.number, "file": version.filename, "sha256": version.checksum}
    record(actor, "version.add", str(version), job=job, after=after)
    return version


@transaction.atomic
def change_settings(job: Job, actor: User, values: Mapping[str, Any]) -> Job:
    """Change some settings; they hold from the next start on. Needs the operator role."""
    require(actor, job, Role.OPERATOR)
    locked = Job.objects.select_for_update().select_related("team", "cluster").get(pk=job.pk)
    before = locked.settings
    locked.settings = settings_from(before | dict(values)).as_json()
    locked.save(update_fields=["settings"])
    record(actor, "job.settings", job.name, job=job, before=before, after=locked.settings)
    return locked


def send_control(job: Job, actor: User, line: str) -> int:
    """Send one line into the job's control stream; how many runs heard it. Operator."""
    require(actor, job, Role.OPERATOR)
    port = settings_from(job.settings).control_port
    if not port:
        msg = (
            f"job {job.name} has no control stream: set control_port to the port that it reads from"
        )
        raise Refused(409, "no_control", msg)
    try:
        heard = send_line(conf.HEADWATER_REDIS_URL, port, line)
    except ValueError as error:
        raise invalid(str(error), "line") from error
    except RedisError as error:
        msg = f"the line was not sent: {error}; try again in a moment"
        raise Refused(502, "control", msg) from error
    if not heard:
        msg = f"nobody heard the line: {job.name} does not listen just now; see whether it runs"
        raise Refused(409, "no_listener", msg)
    record(actor, "job.control", job.name, job=job, after={"line": line})
    return heard


def _check_name(name: str) -> None:
    if name in RESERVED_NAMES:
        msg = f"job name {name} is reserved: a page has that address; choose another"
        raise invalid(msg, "name")
    try:
        Job._meta.get_field("name").clean(name, None)
    except ValidationError:
        msg = (
            f"job name {name[:64]!r} cannot be used: "
            "use up to 64 small letters, digits and dashes, with a letter or digit at each end"
        )
        raise invalid(msg, "name") from None


def _create_version(job: Job, actor: User, artifact: artifacts.Artifact, note: str) -> JobVersion:
    """The next number; the database refuses a second version of the same number."""
    newest = job.versions.aggregate(newest=Max("number"))["newest"] or 0
    return JobVersion.objects.create(
        job=job,
        number=newest + 1,
        filename=artifact.filename,
        checksum=artifact.checksum,
        size_bytes=artifact.size_bytes,
        note=note[:500],
        created_by=actor,
    )
