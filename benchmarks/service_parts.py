"""Processes of the benchmark of the service: a real job manager, and workers that are played.

    python -m benchmarks.service_parts manager HOME JOBS PARALLELISM     prints its address
    python -m benchmarks.service_parts workers RUNTIME SLOTS             plays one task manager

The job manager has no processes of jobs to pay for, but hears as much as from real ones: each
worker says hello over a socket of its own, reports the numbers of its subtasks each second, and
takes part in a checkpoint each second. Jobs have four vertices, so a worker hosts four subtasks.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.checkpoint.restoring.inputs import Positions
from engine.cluster.home import FOLDERS
from engine.cluster.jobmanager import JobManager, Options, listen
from engine.cluster.programs.artifacts import Built
from engine.cluster.programs.build import GRAPH, PLAN
from engine.graph.plan import (
    EdgePlan,
    OperatorKind,
    OperatorPlan,
    Plan,
    VertexPlan,
)
from engine.rest.model.requests import Program, RunRequest
from engine.runtime import control
from engine.testing.played_fleet import PlayedWorker

VERTICES = ("orders", "customers", "totals", "files")
KINDS = (OperatorKind.SOURCE, OperatorKind.TRANSFORM, OperatorKind.TRANSFORM, OperatorKind.SINK)
REPORT_S = 1.0
NUMBERS = {f"metric{number:02}": float(number) for number in range(30)} | {
    "numRecordsIn": 1e6,
    "numRecordsOut": 1e6,
    "busyTimeMsPerSecond": 300.0,
    "backPressuredTimeMsPerSecond": 100.0,
    "idleTimeMsPerSecond": 600.0,
    "currentInputWatermark": 1.7e15,
    "currentOutputWatermark": 1.7e15,
}


Say = Callable[[control.Message], None]
Hear = Say


def vertex_id(place: int) -> str:
    """The id of a vertex, which is the same in all jobs."""
    return f"{place + 1:032x}"


def plan(parallelism: int) -> Plan:
    """A source, two operators and a sink, in a row."""
    return Plan(
        name="orders",
        max_parallelism=128,
        checkpoint_interval_ms=1_000,
        vertices=tuple(
            VertexPlan(vertex_id(at), name, parallelism, (OperatorPlan(name, name, kind, name),))
            for at, (name, kind) in enumerate(zip(VERTICES, KINDS, strict=True))
        ),
        edges=tuple(
            EdgePlan(vertex_id(at), vertex_id(at + 1), "hash", 0) for at in range(len(VERTICES) - 1)
        ),
    )


async def manager(home: Path, jobs: int, parallelism: int) -> None:
    """Run a job manager with so many jobs until a signal ends it."""
    for folder in FOLDERS:
        (home / folder).mkdir(parents=True, exist_ok=True)
    runtime = home / "run"
    runtime.mkdir()
    wanted = plan(parallelism)

    async def build(folder: Path, _positions: Positions) -> Built:
        folder.mkdir()
        (folder / GRAPH).write_bytes(b"")
        (folder / PLAN).write_text(wanted.to_json())
        return Built(folder, home / "artifacts", wanted)

    with listen("127.0.0.1", 0) as listener:
        running = JobManager(
            Options(home, home / "savepoints", "127.0.0.1", 0, runtime, 0, 0, 1_000, None)
        )
        serving = asyncio.create_task(running.run_until_signal(listener))
        for number in range(jobs):
            request = RunRequest(Program(""), f"{number + 1:032x}")
            await running.jobs.submit(request, build)
        while not (runtime / control.SOCKET_NAME).exists():
            await asyncio.sleep(0.01)
        print("http://{}:{}".format(*listener.getsockname()), flush=True)
        await serving


async def workers(runtime: Path, slots: int) -> None:
    """Play a task manager and its workers until the job manager is gone."""
    played: list[PlayedWorker] = []
    beats: list[Say] = []
    open_lines: list[asyncio.Task[None]] = []

    async def talk(hello: control.Message, made: Callable[[Say], Hear]) -> None:
        path = runtime / control.SOCKET_NAME
        reader, writer = await asyncio.open_unix_connection(path, limit=control.MAX_LINE_BYTES)

        def say(message: control.Message) -> None:
            writer.write(control.to_line(message))

        hear = made(say)
        say(hello)
        async for line in reader:
            hear(control.from_line(line))
        writer.close()

    def worker(spec: control.StartWorker, say: Say) -> Hear:
        played.append(PlayedWorker(spec, say, lambda: None, endless=True))
        return played[-1].hear

    def task_manager(say: Say) -> Hear:
        beats.append(say)

        def hear(message: control.Message) -> None:
            if isinstance(message, control.StartWorker):
                hello = control.WorkerHello(message.attempt_id, message.slot, 0)
                line = talk(hello, lambda say: worker(message, say))
                open_lines.append(asyncio.create_task(line))

        return hear

    async def report() -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            for say in beats:
                say(control.Heartbeat(control.ProcessUse(0, 0, 0.0), {}))
            for one in played:
                one.report(NUMBERS)
                await asyncio.sleep(0)  # as processes do, not all at one moment

    reporting = asyncio.create_task(report())
    await talk(control.TaskManagerHello("tm-1", 0, slots, "host"), task_manager)
    reporting.cancel()


def main(argv: Sequence[str]) -> None:
    """Be one of them."""
    if argv[0] == "manager":
        asyncio.run(manager(Path(argv[1]), int(argv[2]), int(argv[3])))
    else:
        asyncio.run(workers(Path(argv[1]), int(argv[2])))


if __name__ == "__main__":
    main(sys.argv[1:])
