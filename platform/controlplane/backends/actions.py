"""What people do to clusters: register, test, change, remove; start and stop task managers.

Clusters are shared by all teams: this needs a platform admin. A token goes in and never out.

Errors   Refused: 403 the role, 400 the input, 409 while jobs are there, 502 when no engine answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from controlplane.access.errors import Refused, conflict, invalid
from controlplane.access.lookup import require_platform_admin
from controlplane.audit.record import record
from controlplane.backends.models import Cluster
from controlplane.backends.probe import Probe, checked_url, probe
from controlplane.backends.tokens import Address, address_of, seal
from controlplane.resting import at_rest
from engine.rest.client import ClientError, EngineClient

COMMAND_S = 10.0


def register_cluster(actor: User, name: str, url: str, token: str = "") -> tuple[Cluster, Probe]:
    """An engine that answers, under a name; one of that name that was removed comes back."""
    require_platform_admin(actor)
    address = Address(checked_url(url), token.strip() or None)
    _check_name(name)
    found = probe(address)
    values = {"sealed_token": seal(token.strip()), "removed_at": None, **_of(address, found)}
    with transaction.atomic():
        cluster, _ = Cluster.objects.update_or_create(name=name, defaults=values)
        after = {"url": address.url, "kind": found.kind, "token": bool(address.token)}
        record(actor, "cluster.register", name, after=after)
    return cluster, found


def change_cluster(
    cluster: Cluster, actor: User, url: str, token: str = "", *, forget_token: bool = False
) -> Probe:
    """Another address or token; an empty token leaves the one that is kept."""
    require_platform_admin(actor)
    kept = None if forget_token else address_of(cluster).token
    address = Address(checked_url(url), token.strip() or kept)
    found = probe(address)
    sealed = "" if forget_token and not token.strip() else cluster.sealed_token
    before = {"url": cluster.url, "token": bool(cluster.sealed_token)}
    with transaction.atomic():
        values = {"sealed_token": seal(token.strip()) or sealed, **_of(address, found)}
        Cluster.objects.filter(pk=cluster.pk).update(**values)
        after = {"url": address.url, "token": bool(values["sealed_token"])}
        record(actor, "cluster.change", cluster.name, before=before, after=after)
    return found


def check_cluster(cluster: Cluster, actor: User) -> Probe:
    """Ask it what it is, now, and keep that."""
    require_platform_admin(actor)
    found = probe(address_of(cluster))
    Cluster.objects.filter(pk=cluster.pk).update(**_of(Address(cluster.url), found))
    return found


@transaction.atomic
def remove_cluster(cluster: Cluster, actor: User) -> None:
    """Take it out; runs of the past keep its name. Refused while it has jobs."""
    require_platform_admin(actor)
    names = list(cluster.jobs.order_by("name").values_list("name", flat=True)[:4])
    if names:
        more = " and others" if len(names) > 3 else ""
        msg = (
            f"cluster {cluster.name} has jobs: {', '.join(names[:3])}{more}; "
            "move them to another cluster first"
        )
        raise conflict(msg)
    Cluster.objects.filter(pk=cluster.pk).update(removed_at=timezone.now(), sealed_token="")
    record(actor, "cluster.remove", cluster.name, before={"url": cluster.url})


def start_task_manager(cluster: Cluster, actor: User) -> str:
    """Let the engine start one more task manager; its name."""
    require_platform_admin(actor)
    with _asked(cluster) as engine:
        name = engine.start_task_manager()
    record(actor, "task_manager.start", f"{name} of {cluster.name}")
    return name


def stop_task_manager(cluster: Cluster, actor: User, name: str) -> None:
    """Let the engine end a task manager; its jobs restart elsewhere, if there are slots."""
    require_platform_admin(actor)
    with _asked(cluster) as engine:
        engine.stop_task_manager(name)
    record(actor, "task_manager.stop", f"{name} of {cluster.name}")


def _of(address: Address, found: Probe) -> dict[str, object]:
    return {
        "url": address.url,
        "kind": found.kind,
        "version": found.version[:64],
        "capabilities": {"engine": found.kind.value, "features": list(found.features)},
        "status": Cluster.Status.OK,
        "last_seen": timezone.now(),
    }


@contextmanager
def _asked(cluster: Cluster) -> Iterator[EngineClient]:
    """Its engine, while no lock is held. Raises Refused with what it says."""
    address = address_of(cluster)
    try:
        with at_rest(), EngineClient(address.url, address.token, COMMAND_S) as engine:
            yield engine
    except ClientError as error:
        raise Refused(502, "engine", str(error)) from error


def _check_name(name: str) -> None:
    if Cluster.present.filter(name=name).exists():
        msg = f"cluster name {name} is taken: choose another"
        raise invalid(msg, "name")
    try:
        Cluster._meta.get_field("name").clean(name, None)
    except ValidationError:
        msg = (
            f"cluster name {name[:64]!r} cannot be used: use up to 64 letters, digits, dashes and "
            "underscores"
        )
        raise invalid(msg, "name") from None
