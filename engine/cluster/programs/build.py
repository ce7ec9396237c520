"""The build step: a program becomes a graph and its plan, in a process of its own.

    python -m engine.cluster.programs.build CODE NAME OUT_DIR REQUEST
        REQUEST is JSON: {"entry": … | null, "arguments": […], "settings": {…}}

    OUT_DIR/positions.json   given, when the job is to start from a snapshot: where sources go on
    OUT_DIR/graph.pkl        the job graph, for workers
    OUT_DIR/plan.json        its plan, for the job manager and for people
    OUT_DIR/inputs.json      which input the positions need and is not there, see `inputs.py`
    OUT_DIR/error.json       instead of them: {"name", "message"}, one sentence

User code runs here, never in the job manager: it may loop, crash, print and eat memory.

Errors   the caller limits the time, and what is resident in memory; what may be reserved for data
         is limited here, where the platform can (Linux). Not the address space: allocators and
         compiled kernels map a multiple of what they touch.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from engine.checkpoint.restoring.inputs import Positions, look
from engine.checkpoint.restoring.starts import starts_of
from engine.errors import ArtifactError, HeadwaterError
from engine.graph.jobgraph import JobGraph
from engine.graph.pickling import pickled
from engine.graph.plan import plan_of
from engine.programs import intake
from engine.programs.loading import load
from engine.stream.calling import JOB_NAME

GRAPH, PLAN = "graph.pkl", "plan.json"
POSITIONS, INPUTS = "positions.json", "inputs.json"

RESIDENT_BYTES = 2 << 30
"""A build that has loaded everything we offer takes 0.3 GiB."""

DATA_BYTES = 4 << 30
"""Reserved for data; half a gigabyte of it by everything we offer, more with more cores."""


def build(
    code: Path, entry: str | None, arguments: Sequence[str], settings: Mapping[str, str]
) -> JobGraph:
    """Load a program and return its graph, under the name that the settings may give it."""
    graph = load(code, entry, arguments, settings, by_value=code.is_file())
    name = settings.get(JOB_NAME)
    return replace(graph, name=name) if name else graph


def main(argv: Sequence[str]) -> int:
    """Build, and leave the result or the reason in the folder."""
    code, name, out = Path(argv[0]), argv[1], Path(argv[2])
    request = json.loads(argv[3])
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
    try:
        graph = build(code, request["entry"], request["arguments"], request["settings"])
        content = pickled(graph)
        positions = _positions(out)
        starts = starts_of(request["settings"]) if positions else {}
        inputs = look(graph, positions, starts)
    except HeadwaterError as error:
        return intake.leave_error(out, error)
    except MemoryError:
        return intake.leave_error(out, needs_memory(name, DATA_BYTES))
    (out / GRAPH).write_bytes(content)
    (out / PLAN).write_text(plan_of(graph).to_json())
    (out / INPUTS).write_text(json.dumps({uid: one.to_json() for uid, one in inputs.items()}))
    return 0


def _positions(out: Path) -> Positions:
    path = out / POSITIONS
    return json.loads(path.read_text()) if path.exists() else {}


def needs_memory(name: str, limit_bytes: int) -> ArtifactError:
    """The refusal of a program that takes too much memory while it is built."""
    msg = (
        f"job file {name} needs more than {limit_bytes >> 30} GiB to be built; read data in "
        "sources, not in the job file"
    )
    return ArtifactError(msg)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
