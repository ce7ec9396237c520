"""The build step: a job file becomes a graph and its plan, in a process of its own.

    python -m engine.cluster.build JOB_FILE OUT_DIR '{"arguments": […], "settings": {…}}'

    OUT_DIR/graph.pkl    the job graph, for workers
    OUT_DIR/plan.json    its plan, for the job manager and for people
    OUT_DIR/error.json   instead of both: {"name", "message"}, one sentence

User code runs here, never in the job manager: it may loop, crash, print and eat memory.

Errors   the caller limits the time; memory is limited here, where the platform can (Linux).
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from engine.errors import ArtifactError, HeadwaterError
from engine.graph.jobgraph import JobGraph
from engine.graph.pickling import pickled
from engine.graph.plan import plan_of
from engine.stream import capture

GRAPH, PLAN, ERROR = "graph.pkl", "plan.json", "error.json"
JOB_NAME = "pipeline.name"

MEMORY_BYTES = 8 << 30
"""Address space, most of it reserved and never touched by the allocators of Polars and Arrow."""


def build(artifact: Path, arguments: Sequence[str], settings: Mapping[str, str]) -> JobGraph:
    """Run a job file and return its graph, under the name that the settings may give it."""
    graph = capture(artifact, arguments, settings)
    name = settings.get(JOB_NAME)
    return replace(graph, name=name) if name else graph


def main(argv: Sequence[str]) -> int:
    """Build, and leave the result or the reason in the folder."""
    artifact, out = Path(argv[0]), Path(argv[1])
    request = json.loads(argv[2])
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        graph = build(artifact, request["arguments"], request["settings"])
        content = pickled(graph)
    except HeadwaterError as error:
        return _fail(out, error)
    except MemoryError:
        msg = f"job file {artifact.name} needs more than {MEMORY_BYTES >> 30} GiB to be built"
        return _fail(out, ArtifactError(f"{msg}; read data in sources, not in the job file"))
    (out / GRAPH).write_bytes(content)
    (out / PLAN).write_text(plan_of(graph).to_json())
    return 0


def _fail(out: Path, error: HeadwaterError) -> int:
    body = {"name": type(error).__name__, "message": str(error)}
    (out / ERROR).write_text(json.dumps(body))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
