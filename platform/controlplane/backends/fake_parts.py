"""What the engine in memory keeps: jobs, savepoints and rescales on their way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from controlplane.backends.contract import EngineJob, Start

SPLITS = {"EWR": {"position": 100}, "JFK": {"position": 90}}
SOURCE, SINK = "0" * 31 + "1", "0" * 31 + "2"


def plan_at(parallelism: int) -> dict[str, Any]:
    """The plan of every job: one source, one vertex that counts and writes."""
    into_sink = {"id": SOURCE, "num": 0, "ship_strategy": "HASH"}
    return {
        "name": "fake",
        "nodes": [
            _node(SOURCE, parallelism, ["flights"], []),
            _node(SINK, parallelism, ["daily", "files"], [into_sink]),
        ],
    }


def _node(
    vertex: str, parallelism: int, operators: list[str], inputs: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "id": vertex,
        "parallelism": parallelism,
        "description": " -> ".join(operators),
        "operators": operators,
        "inputs": inputs,
    }


@dataclass
class FakeJob:
    """A job and what is asked of it."""

    request: Start
    status: EngineJob
    looks_until_up: int
    stop_at: str = ""
    looks: int = 0

    def come_nearer(self, looks_until_end: int) -> None:
        """A look at a job that ends by itself, the last of so many ends it."""
        self.looks += 1
        if self.looks >= looks_until_end:
            self.status = replace(self.status, state="FINISHED", tasks_running=0)

    def resize(self, parallelism: int) -> None:
        """Run at another parallelism."""
        self.request = replace(self.request, parallelism=parallelism)
        self.status = replace(
            self.status,
            tasks_running=2 * parallelism,
            tasks_total=2 * parallelism,
            plan=plan_at(parallelism),
        )


@dataclass
class FakeTrigger:
    """A savepoint on its way."""

    engine_job_id: str
    location: str
    stops: bool
    looks_until_done: int
    failure: str = ""


@dataclass
class FakeRescale:
    """A change of parallelism on its way."""

    engine_job_id: str
    parallelism: int
    looks_until_done: int
    failure: str = ""
