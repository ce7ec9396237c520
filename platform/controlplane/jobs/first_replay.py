"""The way to a first replay, on the demo's flights: what to do next, and the demo's own version 2.

    savepoint ─▶ upload ─▶ replay        when a replay was made the page has no more to suggest

The flights are known by the bytes of their file, so that a job of the same name is left alone.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User

from controlplane.access.errors import conflict
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.jobs.actions import add_version
from controlplane.jobs.models import Job, JobVersion
from controlplane.snapshots.usable import usable

FIRST = "flights.py"
CORRECTED = "flights_v2.py"
NOTE = "a cancelled flight has no delay"


def has_file(version: JobVersion | None, filename: str) -> bool:
    """Whether the version is that example."""
    return version is not None and version.checksum == _checksum(filename)


def next_step(job: Job, newest: JobVersion | None) -> str:
    """What is to be done next: savepoint, upload or replay."""
    if not usable(job.savepoints.all()).exists():
        return "savepoint"
    return "upload" if has_file(newest, FIRST) else "replay"


def upload_corrected(job: Job, actor: User) -> JobVersion:
    """The demo's second version, added to its flights. Needs the operator role."""
    require(actor, job, Role.OPERATOR)
    newest = job.versions.order_by("-number").first()
    file = _example(CORRECTED)
    if not has_file(newest, FIRST) or not file.is_file():
        msg = f"the newest version of {job.name} is not the demo's {FIRST}: upload a file yourself"
        raise conflict(msg)
    return add_version(job, actor, CORRECTED, file.read_bytes(), NOTE)


def _example(filename: str) -> Path:
    return Path(settings.BASE_DIR, "examples", filename)


@cache
def _checksum(filename: str) -> str:
    """SHA-256 of an example; empty where the examples are not installed."""
    file = _example(filename)
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
