"""Requests about the engine itself and its task managers."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from engine.rest.answers.cluster import (
    Capabilities,
    LocalTaskManagers,
    Overview,
    TaskManager,
)
from engine.rest.answers.watching import metric_values
from engine.rest.calls.call import Call

LOCAL = "/headwater/taskmanagers"


def overview() -> Call[Overview]:
    """Totals of the engine."""
    return Call("GET", "/overview", Overview.of)


def capabilities() -> Call[Capabilities]:
    """What the engine is; a Flink cluster answers NotFound."""
    return Call("GET", "/headwater/capabilities", Capabilities.of)


def task_managers() -> Call[list[TaskManager]]:
    """Registered task managers."""
    return Call(
        "GET", "/taskmanagers", lambda body: list(map(TaskManager.of, body["taskmanagers"]))
    )


def task_manager_metrics(manager_id: str, names: Sequence[str]) -> Call[dict[str, str]]:
    """Metrics of one task manager; unknown names are left out."""
    path = f"/taskmanagers/{quote(manager_id, safe=':')}/metrics"
    return Call("GET", path, metric_values, {"get": ",".join(names)})


def job_manager_metrics(names: Sequence[str]) -> Call[dict[str, str]]:
    """Metrics of the job manager; unknown names are left out."""
    return Call("GET", "/jobmanager/metrics", metric_values, {"get": ",".join(names)})


def local_task_managers() -> Call[LocalTaskManagers]:
    """Task managers that the job manager starts itself."""
    return Call("GET", LOCAL, LocalTaskManagers.of)


def start_task_manager(name: str | None = None) -> Call[str]:
    """Start one more, or a lost one again; its name."""
    return Call("POST", LOCAL, lambda body: str(body["name"]), body={"name": name})


def stop_task_manager(name: str) -> Call[None]:
    """End a task manager, whoever started it; it stays away."""
    return Call("DELETE", f"{LOCAL}/{quote(name, safe='')}", lambda body: None)


def respawn_task_managers(wish: bool) -> Call[LocalTaskManagers]:
    """Whether task managers that are lost are started again."""
    return Call("PATCH", LOCAL, LocalTaskManagers.of, body={"respawn": wish})
