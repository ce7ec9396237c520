"""The job manager: the process that knows every job, and serves REST.

    python -m engine.cluster.jobmanager --home DIR [--port 8081] [--task-managers 2] [--slots 4]

    HOME/engine.db       what must survive its death
    HOME/artifacts jobs checkpoints savepoints logs
    HOME/jobmanager.json its address and process id, while it runs
    HOME/passing         temporary files of it and its steps, while it runs
    RUNTIME/*.sock       sockets, in a folder with a short path

User code never runs here. Killed and started again, it goes on with every job from its latest
checkpoint: whatever processes its predecessor left are ended first.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from engine.cluster.answers.influx_reporter import InfluxReporter, InfluxSettings
from engine.cluster.answers.service import JobManagerService
from engine.cluster.forgetting import WEEK, Rules
from engine.cluster.home import (
    ADDRESS_FILE,
    FOLDERS,
    locked,
    publish,
    runtime_folder,
    temporary_files,
)
from engine.cluster.jobs.deployment import Surroundings
from engine.cluster.jobs.registry import Jobs
from engine.cluster.machines import processes
from engine.cluster.machines.control_server import serve_control
from engine.cluster.machines.fleet import Fleet
from engine.cluster.machines.resources import LocalTaskManagers
from engine.cluster.machines.sweeping import sweep_sockets
from engine.cluster.programs.artifacts import Artifacts
from engine.cluster.retention import Retention
from engine.cluster.settings.cluster_settings import (
    EVERY_SECOND,
    Heartbeats,
    heartbeats_of,
    parse_settings,
    rules_of,
)
from engine.cluster.store.store import Store
from engine.errors import ConfigError
from engine.rest import tokens
from engine.rest.app import create_app
from engine.rest.model.metrics import Sample
from engine.rest.render.samples import samples
from engine.runtime.worker_lifeline import die_with_parent

log = logging.getLogger(__name__)

MAX_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class Options:
    """How to run a job manager."""

    home: Path
    savepoints: Path
    host: str
    port: int
    runtime: Path
    task_managers: int
    slots: int
    max_rows: int
    token: str | None
    heartbeats: Heartbeats = EVERY_SECOND
    retention: Rules = WEEK
    leave_lost: bool = False
    snapshots: tuple[str, ...] = ()
    """Other folders in which clients may look at snapshots."""
    influx: InfluxSettings | None = None
    """Where metrics are reported to."""
    environment: Mapping[str, str] | None = None
    """Of an embedded cluster: variables of its processes, which print where this one does."""


class JobManager:
    """All parts of the process, put together."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._store = Store(options.home / "engine.db")
        self.fleet = Fleet(self._store, self._on_slots, options.heartbeats)
        logs = options.home / "logs"
        embedded = options.environment is not None
        around = Surroundings(
            self._store, self.fleet, options.runtime, logs, options.max_rows, embedded
        )
        artifacts = Artifacts(options.home, self._store)
        self.jobs = Jobs(options.home, around, artifacts)
        self._resources = LocalTaskManagers(
            options.runtime,
            logs,
            options.slots,
            options.environment,
            respawn=not options.leave_lost,
        )
        self._reporter = None if options.influx is None else InfluxReporter(options.influx)
        self._service = service = JobManagerService(
            options.savepoints,
            self._store,
            self.fleet,
            artifacts,
            self.jobs,
            self._resources,
            options.snapshots,
            self._reporter,
        )
        self.retention = Retention(
            options.home, self._store, self.jobs, artifacts, options.retention
        )
        app = create_app(service, options.token)
        config = uvicorn.Config(app, lifespan="off", log_level="warning", access_log=False)
        self._server = _Server(config)

    def _on_slots(self) -> None:
        self.jobs.on_slots()

    async def run_until_signal(self, listener: socket.socket) -> None:
        """Serve until SIGINT or SIGTERM. Main thread."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, self.ask_to_end)
        # What is imported by now stays for good; walking it held up every request for 80 ms.
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000)
        await self.run(listener)

    def ask_to_end(self) -> None:
        """End after the requests that are under way; a second time: at once."""
        self._server.ask_to_end()

    async def run(self, listener: socket.socket) -> None:
        """Serve until someone asks to end."""
        await self._end_left_over()
        control = await serve_control(self._options.runtime, self.fleet)
        tasks = [asyncio.create_task(self.fleet.watch())]
        if self._reporter is not None:
            tasks.append(asyncio.create_task(self._reporter.run(self._samples)))
        self.jobs.recover()
        await self.retention.sweep()
        tasks.append(asyncio.create_task(self.retention.watch()))
        for number in range(1, self._options.task_managers + 1):
            self._resources.want(f"tm-{number}")
        try:
            await self._server.serve([listener])
        finally:
            for task in tasks:
                task.cancel()
            if self._reporter is not None:
                self._reporter.close()
            self.fleet.close()
            await self._resources.close()
            control.close()
            await self.jobs.end()
            await self._end_left_over()
            await self.jobs.sweep()
            self._store.close()

    async def _samples(self) -> Iterable[Sample]:
        cluster, jobs = await self._service.cluster(), await self._service.jobs()
        return await asyncio.to_thread(samples, cluster, jobs)

    async def _end_left_over(self) -> None:
        """End every process that an engine in this home has started and not seen end; sweep up."""
        left = self._store.processes()
        await processes.end(left)
        for row in left:
            self._store.forget_process(row.pid)
        sweep_sockets(self._options.runtime)


class _Server(uvicorn.Server):
    """A server that leaves signals to the job manager, which has more to close."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signal handlers as they are."""
        yield

    def ask_to_end(self) -> None:
        """End after the requests that are under way; a second time: at once."""
        self.force_exit = self.should_exit
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """Open the REST port. Raises ConfigError when it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By its name: only of TCP does asyncio send small answers at once, instead of after 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        taken = error.errno == errno.EADDRINUSE
        reason = "another process listens there" if taken else error.strerror
        msg = f"port {port} on {host} cannot be used: {reason}; pass another one with --port"
        raise ConfigError(msg) from error
    listener.listen(128)
    return listener


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "headwater jobmanager", description="run the engine's job manager"
    )
    home = Path(os.environ.get("HEADWATER_HOME", ".headwater")) / "engine"
    parser.add_argument("--home", type=Path, default=home, help="folder of everything it keeps")
    parser.add_argument("--host", default="127.0.0.1", help="address of the REST interface")
    parser.add_argument("--port", type=int, default=8081, help="its port; 0: any free one")
    parser.add_argument("--runtime-dir", type=Path, help="folder of sockets, with a short path")
    parser.add_argument(
        "--task-managers",
        type=int,
        default=0,
        help="how many to keep alive here; 0: those that `headwater taskmanager` starts",
    )
    parser.add_argument("--slots", type=int, default=4, help="slots of each of them")
    parser.add_argument("--max-rows", type=int, default=MAX_ROWS, help="rows of one poll at most")
    parser.add_argument(
        "--leave-lost", action="store_true", help="do not start a lost task manager again"
    )
    parser.add_argument(
        "-D",
        dest="settings",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the cluster, e.g. heartbeat.timeout=10s",
    )
    parser.add_argument(
        "--snapshots",
        action="append",
        default=[],
        metavar="FOLDER",
        help="folder, or s3://…, in which clients may look at snapshots, besides the engine's own",
    )
    parser.add_argument("--lifeline", action="store_true", help="die with the parent process")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a job manager until a signal ends it; return the exit code."""
    parsed = _parse(argv)
    if parsed.lifeline:
        die_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    home = parsed.home.absolute()
    try:
        for folder in FOLDERS:
            (home / folder).mkdir(parents=True, exist_ok=True)
        with (
            locked(home),
            runtime_folder(home, parsed.runtime_dir) as runtime,
            temporary_files(home / "passing"),
        ):
            options = _options(parsed, home, runtime)
            with listen(options.host, options.port) as listener:
                publish(home, listener)
                asyncio.run(JobManager(options).run_until_signal(listener))
    except ConfigError as error:
        print(f"headwater: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"headwater: home folder {home} cannot be used: {error}", file=sys.stderr)
        return 1
    with suppress(OSError):
        (home / ADDRESS_FILE).unlink()
    return 0


def _options(parsed: argparse.Namespace, home: Path, runtime: Path) -> Options:
    """What was asked for. Raises ConfigError."""
    settings = parse_settings(parsed.settings)
    return Options(
        home,
        home / "savepoints",
        parsed.host,
        parsed.port,
        runtime,
        parsed.task_managers,
        parsed.slots,
        parsed.max_rows,
        _take_token(parsed.host),
        heartbeats_of(settings),
        rules_of(settings),
        parsed.leave_lost,
        tuple(parsed.snapshots),
        InfluxSettings.taken_from(os.environ),
    )


def _take_token(host: str) -> str | None:
    """The token that guards the address; user code does not inherit it. Raises ConfigError."""
    token = tokens.token_of(os.environ)
    tokens.check_address(host, token)
    for name in (tokens.VARIABLE, tokens.FILE_VARIABLE):
        os.environ.pop(name, None)
    return token


if __name__ == "__main__":
    sys.exit(main())
