"""What people do to the run of a job: start, stop, drain, cancel, upgrade, roll back, rescale.

Each checks the role and begins one operation, which is audited with its actor and reason.

Errors   Refused, with one sentence: 403 the role, 409 not now, 400 what cannot be meant.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import User

from controlplane.access.errors import Refused, invalid, not_found
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.jobs.health import last_healthy_version, live_run
from controlplane.jobs.models import Job, JobVersion, Run, RunState
from controlplane.operations.kinds.checks import require_live_run
from controlplane.operations.kinds.upgrade import LAST_STATE, MODES, SAVEPOINT
from controlplane.operations.models import Operation
from controlplane.operations.start import start_operation
from controlplane.operations.steps.snapshotting import mirrored
from controlplane.snapshots.models import Savepoint


def deploy(
    job: Job,
    actor: User,
    version: JobVersion | None = None,
    savepoint: Savepoint | None = None,
    idempotency_key: str = "",
    *,
    drop: Collection[str] = (),
    accept_missing: Collection[str] = (),
    reason: str = "",
) -> Operation:
    """Start a version (default: the newest), from nothing or from a savepoint. Operator.

    `drop`: state (uid, or uid/state) that may be left behind; `accept_missing`: sources (uid) that
    may go on without input which is not there any more.
    """
    require(actor, job, Role.OPERATOR)
    chosen = version or newest_version(job)
    params: dict[str, Any] = {"version": chosen.pk, "savepoint": savepoint and savepoint.pk}
    params |= agreed(drop, accept_missing)
    return start_operation("deploy", job, actor, params, idempotency_key, reason=reason)


def upgrade(
    job: Job,
    actor: User,
    version: JobVersion,
    savepoint: Savepoint | None = None,
    idempotency_key: str = "",
    *,
    mode: str = SAVEPOINT,
    drop: Collection[str] = (),
    accept_missing: Collection[str] = (),
    consent: bool = False,
    reason: str = "",
) -> Operation:
    """End the running version and start another where it was. Operator.

    With `savepoint` the new version starts from that one instead, and goes back to where it was
    taken. `drop` and `accept_missing` as for a start. `consent`: to leave all state behind, in the
    mode stateless.
    """
    require(actor, job, Role.OPERATOR)
    params = _upgrade_params(version, mode) | {"savepoint": savepoint and savepoint.pk}
    params |= agreed(drop, accept_missing)
    if consent:
        params["consent"] = True
    return start_operation("upgrade", job, actor, params, idempotency_key, reason=reason)


def rollback(
    job: Job,
    actor: User,
    idempotency_key: str = "",
    *,
    mode: str = "",
    accept_missing: Collection[str] = (),
    reason: str = "",
) -> Operation:
    """Go back to the last version that was healthy, with the present state. Operator.

    The mode is by default savepoint, or last_state when not every task runs. `accept_missing` as
    for a start.
    """
    require(actor, job, Role.OPERATOR)
    run = live_run(job)
    version = last_healthy_version(job, besides=run)
    if version is None:
        msg = (
            f"job {job.name} has no other version that was healthy: none ran, completed a "
            "checkpoint, and was not restarted after it; choose a version and upgrade to it"
        )
        raise Refused(409, "no_healthy_version", msg)
    if run is None:
        return _start_again(job, actor, version, accept_missing, idempotency_key, reason)
    best = SAVEPOINT if run.state == RunState.RUNNING else LAST_STATE
    params = _upgrade_params(version, mode or best) | agreed((), accept_missing)
    return start_operation("rollback", job, actor, params, idempotency_key, reason=reason)


def rescale(
    job: Job, actor: User, parallelism: int, idempotency_key: str = "", *, reason: str = ""
) -> Operation:
    """Run the job on at another parallelism. Operator."""
    require(actor, job, Role.OPERATOR)
    version = require_live_run(job, "rescale").version
    params = {"parallelism": parallelism, "version": version.pk}
    return start_operation("rescale", job, actor, params, idempotency_key, reason=reason)


def stop(
    job: Job, actor: User, *, drain: bool = False, reason: str = "", idempotency_key: str = ""
) -> Operation:
    """Stop with a savepoint; with `drain` every window is closed first. Operator."""
    require(actor, job, Role.OPERATOR)
    kind = "drain" if drain else "stop"
    return start_operation(kind, job, actor, {}, idempotency_key, reason=reason)


def cancel(job: Job, actor: User, *, reason: str = "", idempotency_key: str = "") -> Operation:
    """End the run at once, without a savepoint. Operator."""
    require(actor, job, Role.OPERATOR)
    return start_operation("cancel", job, actor, {}, idempotency_key, reason=reason)


def newest_version(job: Job) -> JobVersion:
    """The version with the highest number. Raises Refused when there is none."""
    found = job.versions.order_by("-number").first()
    if found is None:
        raise not_found(what="version", name=f"of {job.name}")
    return found


def _upgrade_params(version: JobVersion, mode: str) -> dict[str, Any]:
    if mode not in MODES:
        msg = f"upgrade mode is not known: got {mode!r}; use one of {', '.join(MODES)}"
        raise invalid(msg, "mode")
    return {"version": version.pk, "mode": mode}


def agreed(drop: Collection[str], accept_missing: Collection[str]) -> dict[str, list[str]]:
    """What may be lost, as far as something may."""
    asked = {"drop": drop, "accept_missing_input": accept_missing}
    return {name: sorted(set(given)) for name, given in asked.items() if given}


def _start_again(
    job: Job,
    actor: User,
    version: JobVersion,
    accept_missing: Collection[str],
    idempotency_key: str,
    reason: str,
) -> Operation:
    """A job that does not run starts with that version, from what its last run left."""
    last = job.runs.filter(purpose=Run.Purpose.LIVE).first()
    path = (mirrored(last) or last.restored_path) if last else ""
    params: dict[str, Any] = {"version": version.pk, "savepoint": None, "snapshot": path}
    params |= agreed((), accept_missing)
    return start_operation("deploy", job, actor, params, idempotency_key, reason=reason)
