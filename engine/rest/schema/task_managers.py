"""Of the engine itself, and of the task managers that it starts."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Capabilities(TypedDict):
    """What this engine is, and which additions it has."""

    engine: str
    version: str
    features: list[str]


class LocalTaskManager(TypedDict):
    """One that is wanted."""

    name: str
    state: str
    pid: int | None


class LocalTaskManagers(TypedDict):
    """Which are wanted, and which of them run."""

    respawn: bool
    taskmanagers: list[LocalTaskManager]


class TaskManagerBody(TypedDict):
    """Its name, or one is chosen."""

    name: NotRequired[str | None]


class TaskManagerName(TypedDict):
    """Of one that starts."""

    name: str


class RespawnBody(TypedDict):
    """Whether lost ones are started again."""

    respawn: bool
