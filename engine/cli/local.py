"""Commands that read job files here: the graph of one."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.graph.explain import explain
from engine.graph.plan import plan_of
from engine.stream.capture import capture
from engine.stream.recording import PARALLELISM


def plan(options: argparse.Namespace) -> None:
    """Run a job file up to its `execute()` and print the graph."""
    settings = dict(options.settings)
    if options.parallelism is not None:
        settings[PARALLELISM] = str(options.parallelism)
    graph = capture(Path(options.file), options.args, settings)
    print(plan_of(graph).to_json() if options.json else explain(graph))
