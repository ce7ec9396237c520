"""Clusters: the engines that jobs run on."""

from __future__ import annotations

from typing import Any

from ninja import Router, Status

from controlplane.access.lookup import cluster_for
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.others import (
    ClusterChange,
    ClusterIn,
    ClusterOut,
    ClusterUse,
    TaskManager,
)
from controlplane.backends import actions
from controlplane.backends.models import Cluster
from controlplane.backends.queries import ClusterView, cluster_view

router = Router(tags=["clusters"])


@router.get("clusters", response=Page[ClusterOut], summary="List clusters")
def list_clusters(
    request: ApiRequest, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """By name."""
    return page(Cluster.present.all(), list, limit, cursor, "name")


@router.post("clusters", response={201: ClusterOut}, summary="Register a cluster")
def register(request: ApiRequest, body: ClusterIn) -> Status[Cluster]:
    """An engine that answers, under a name; the token goes in and never out. Platform admin."""
    cluster, _ = actions.register_cluster(request.auth, body.name, body.url, body.token)
    return Status(201, cluster)


@router.get("clusters/{cluster}", response=ClusterOut, summary="One cluster")
def one_cluster(request: ApiRequest, cluster: str) -> Cluster:
    """As the collector saw it last."""
    return cluster_for(request.auth, cluster)


@router.patch("clusters/{cluster}", response=ClusterOut, summary="Change a cluster")
def change(request: ApiRequest, cluster: str, body: ClusterChange) -> Cluster:
    """Another address or token. Platform admin."""
    found, user = cluster_for(request.auth, cluster), request.auth
    address = body.url or found.url
    actions.change_cluster(found, user, address, body.token, forget_token=body.forget_token)
    return cluster_for(user, cluster)


@router.post("clusters/{cluster}/check", response=ClusterOut, summary="Ask a cluster")
def check(request: ApiRequest, cluster: str) -> Cluster:
    """Ask it what it is, now. Platform admin."""
    actions.check_cluster(cluster_for(request.auth, cluster), request.auth)
    return cluster_for(request.auth, cluster)


@router.delete("clusters/{cluster}", response={204: None}, summary="Take a cluster out")
def remove(request: ApiRequest, cluster: str) -> Status[None]:
    """Refused while it has jobs; runs of the past keep its name. Platform admin."""
    actions.remove_cluster(cluster_for(request.auth, cluster), request.auth)
    return Status(204, None)


@router.get("clusters/{cluster}/task-managers", response=ClusterUse, summary="Task managers")
def task_managers(request: ApiRequest, cluster: str) -> ClusterView:
    """Asked of the engine just now: its task managers, and what runs in their slots."""
    return cluster_view(request.auth, cluster_for(request.auth, cluster))


@router.post(
    "clusters/{cluster}/task-managers", response={201: TaskManager}, summary="Start a task manager"
)
def start_task_manager(request: ApiRequest, cluster: str) -> Status[TaskManager]:
    """Let the engine start one more. Platform admin."""
    found = cluster_for(request.auth, cluster)
    return Status(201, TaskManager(id=actions.start_task_manager(found, request.auth)))


@router.delete(
    "clusters/{cluster}/task-managers/{manager}",
    response={204: None},
    summary="Stop a task manager",
)
def stop_task_manager(request: ApiRequest, cluster: str, manager: str) -> Status[None]:
    """Its jobs restart elsewhere, if there are slots. Platform admin."""
    actions.stop_task_manager(cluster_for(request.auth, cluster), request.auth, manager)
    return Status(204, None)
