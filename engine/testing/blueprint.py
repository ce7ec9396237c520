"""A job as the simulation starts it: built, pickled, and copied for every subtask.

    build --for a parallelism--> Blueprint --unpickled for every subtask--> TaskSpec

Guarantee  subtasks share nothing, as in workers: each has its own copy of the graph.
Cost       building and pickling a job takes longer than running most of its histories.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace

import cloudpickle

from engine.graph.jobgraph import JobGraph, TaskId
from engine.graph.plan import plan_of
from engine.runtime.spec import TaskSpec
from engine.runtime.wiring import wire
from engine.testing.memory import OutputTables

Build = Callable[[int, OutputTables], JobGraph]
"""(parallelism, where the sinks go) -> the job."""

JOB_ID = "0" * 32


class Blueprint:
    """A job at one parallelism."""

    def __init__(self, graph: JobGraph, output: OutputTables) -> None:
        """Take a graph whose sinks go to `output`; those of a copy go where the copy wants."""
        self.graph = graph
        self.plan = plan_of(graph)
        wiring = wire(graph, JOB_ID, "")
        self.routes = wiring.routes
        self._specs = {id_: _pickled(spec, output) for id_, spec in wiring.specs.items()}

    def specs(self, attempt_id: str, output: OutputTables) -> Mapping[TaskId, TaskSpec]:
        """Every subtask of an attempt, with a graph of its own."""
        specs = {id_: _unpickled(content, output) for id_, content in self._specs.items()}
        return {id_: replace(spec, attempt_id=attempt_id) for id_, spec in specs.items()}


class Blueprints:
    """A job at every parallelism that was asked for: each is built once."""

    def __init__(self, build: Build) -> None:
        self._build = build
        self._known: dict[int, Blueprint] = {}

    def at(self, parallelism: int) -> Blueprint:
        """The job at a parallelism."""
        if parallelism not in self._known:
            self._known[parallelism] = drawn(self._build, parallelism)
        return self._known[parallelism]


def drawn(build: Build, parallelism: int) -> Blueprint:
    """The job at a parallelism, built now."""
    output = OutputTables()
    return Blueprint(build(parallelism, output), output)


class _Pickler(cloudpickle.Pickler):
    """Leaves out the output tables: they are the only thing that a history puts in place."""

    def __init__(self, file: io.BytesIO, output: OutputTables) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self._output = output

    def persistent_id(self, value: object) -> str | None:
        return "output" if value is self._output else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, output: OutputTables) -> None:
        super().__init__(file)
        self._output = output

    def persistent_load(self, _: object) -> OutputTables:
        return self._output


def _pickled(spec: TaskSpec, output: OutputTables) -> bytes:
    file = io.BytesIO()
    _Pickler(file, output).dump(spec)  # type: ignore[no-untyped-call]
    return file.getvalue()


def _unpickled(content: bytes, output: OutputTables) -> TaskSpec:
    spec: TaskSpec = _Unpickler(io.BytesIO(content), output).load()
    return spec
