"""Commands that read job files here: the graph of one."""

from __future__ import annotations

import argparse

from engine.graph.explain import explain
from engine.graph.jobgraph import JobGraph
from engine.graph.plan import plan_of
from engine.programs.loading import load, opened
from engine.stream.recording import PARALLELISM


def plan(options: argparse.Namespace) -> None:
    """Run a job file up to its `execute()` and print the graph."""
    graph = captured(options)
    print(plan_of(graph).to_json() if options.json else explain(graph))


def captured(options: argparse.Namespace) -> JobGraph:
    """The graph of a job file under the settings that were given."""
    settings = dict(options.settings)
    if options.parallelism is not None:
        settings[PARALLELISM] = str(options.parallelism)
    with opened(options.file, options.entry) as (code, entry):
        return load(code, entry, options.args, settings)
