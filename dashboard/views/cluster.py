"""Clusters: the engines, their task managers and slots; registering, testing and removing one."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import cluster_for, is_platform_admin
from controlplane.backends import actions
from controlplane.backends.queries import clusters
from dashboard.answers import checked, said
from dashboard.cluster_forms import ChangeClusterForm, ClusterForm, ConfirmForm, TaskManagerForm
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """Every cluster, asked just now."""
    return render(
        request,
        "cluster.html",
        {
            "section": "cluster",
            "clusters": clusters(request.user),
            "may_change": is_platform_admin(request.user),
        },
    )


@login_required
@require_POST
def register(request: UserRequest) -> HttpResponse:
    """Take an engine in that answers."""
    asked = checked(ClusterForm(request.POST))
    cluster, found = actions.register_cluster(
        request.user, asked["name"], asked["url"], asked["token"]
    )
    return _said(request, f"{cluster.name} is here: {found.sentence}", move=True)


@login_required
@require_POST
def change(request: UserRequest, cluster: str) -> HttpResponse:
    """Another address or token."""
    asked = checked(ChangeClusterForm(request.POST))
    found = actions.change_cluster(
        cluster_for(request.user, cluster),
        request.user,
        asked["url"],
        asked["token"],
        forget_token=asked["forget_token"],
    )
    return _said(request, f"{cluster}: {found.sentence}", move=True)


@login_required
@require_POST
def check(request: UserRequest, cluster: str) -> HttpResponse:
    """See whether it answers, and as what."""
    found = actions.check_cluster(cluster_for(request.user, cluster), request.user)
    return _said(request, f"{cluster}: {found.sentence}")


@login_required
@require_POST
def remove(request: UserRequest, cluster: str) -> HttpResponse:
    """Take it out."""
    found = cluster_for(request.user, cluster)
    checked(ConfirmForm(request.POST, name=found.name))
    actions.remove_cluster(found, request.user)
    return _said(request, f"{cluster} is taken out; its engine runs on", move=True)


@login_required
@require_POST
def start_task_manager(request: UserRequest, cluster: str) -> HttpResponse:
    """One more task manager."""
    name = actions.start_task_manager(cluster_for(request.user, cluster), request.user)
    return _said(request, f"Task manager {name} is starting")


@login_required
@require_POST
def stop_task_manager(request: UserRequest, cluster: str) -> HttpResponse:
    """End the task manager whose name was typed."""
    manager = checked(TaskManagerForm(request.POST))["manager"]
    actions.stop_task_manager(cluster_for(request.user, cluster), request.user, manager)
    return _said(request, f"Task manager {manager} is stopped; its jobs restart")


def _said(request: UserRequest, sentence: str, *, move: bool = False) -> HttpResponse:
    return said(request, sentence, reverse("dashboard:cluster"), move=move)
