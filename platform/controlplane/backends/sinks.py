"""Where a running job writes, as its engine describes its sinks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.backends.asked import Answer, asked
from controlplane.backends.models import Cluster
from engine.rest.client import EngineClient


@dataclass(frozen=True, slots=True)
class SinkPlace:
    """One sink."""

    uid: str
    name: str
    kind: str
    """For people: parquet, JSON lines, influx, print."""
    target: str
    """A folder or a measurement; empty when the sink does not say."""
    more: Mapping[str, str]
    """What else it says of itself; never a secret."""


def sinks_of(cluster: Cluster, engine_job_id: str) -> Answer[tuple[SinkPlace, ...]]:
    """Its sinks, in the order of its graph. Apache Flink has no such answer."""

    def question(engine: EngineClient) -> tuple[SinkPlace, ...]:
        plan = engine.engine_plan(engine_job_id)
        operators = [one for vertex in plan["vertices"] for one in vertex["operators"]]
        return tuple(_place(one) for one in operators if one["kind"] == "sink")

    return asked(cluster, ("sinks", engine_job_id), question)


def _place(operator: Mapping[str, Any]) -> SinkPlace:
    said = {str(name): str(text) for name, text in dict(operator["description"]).items()}
    kind, target = said.pop("kind", str(operator["type"])), said.pop("target", "")
    return SinkPlace(str(operator["uid"]), str(operator["name"]), kind, target, said)
