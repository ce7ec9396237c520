"""Commands that ask an engine to do something, and wait until it is done.

Order    a command that was interrupted goes on in the engine; asking again is safe for all of them
         but `run`, which starts another job unless it has a `--job-id`.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path

from engine.checkpoint.restoring.renames import RENAMES
from engine.checkpoint.restoring.starts import POSITIONS
from engine.cli.rows import frame_of, print_rows
from engine.cli.table import table
from engine.errors import ConfigError, ExternalError
from engine.programs.packing import locate, pack
from engine.rest.answers.jobs import JobSummary
from engine.rest.client import EngineClient, Refused
from engine.rest.errors import Unavailable
from engine.rest.model.requests import (
    ClaimMode,
    Program,
    RescaleRequest,
    RunRequest,
    SavepointRequest,
    StopRequest,
)
from engine.rest.model.states import StateQuery

PATIENCE_S = 3.0
"""After so long without an answer it is told what a savepoint waits for."""

INSTALLING_S = 2.0

POLL_S = 0.1
"""Short against the time of a savepoint, long against that of a request."""

NAME_SETTING = "pipeline.name"


class Target:
    """An engine, with the jobs that people mean."""

    def __init__(self, engine: EngineClient) -> None:
        self.engine = engine

    def job(self, wanted: str) -> JobSummary:
        """The one job that fits; a running one before ended ones. Raises ConfigError."""
        jobs = self.engine.jobs()
        exact = [job for job in jobs if wanted in (job.id, job.name)]
        begin = [job for job in jobs if job.id.startswith(wanted) or job.name.startswith(wanted)]
        fitting = exact or begin
        running = [job for job in fitting if not job.state.terminal]
        chosen = running or fitting
        if not chosen:
            msg = f"job {wanted!r} is not known at {self.engine.url}; see headwater list --all"
            raise ConfigError(msg)
        if len(chosen) > 1:
            shown = ", ".join(f"{job.id} ({job.name}, {job.state})" for job in chosen)
            msg = f"job {wanted!r} is not unique: it may be {shown}; give the id"
            raise ConfigError(msg)
        return chosen[0]

    def run(self, request: RunRequest) -> str:
        """Start a job as soon as the engine has installed what it needs; return its id."""
        told = False
        while True:
            try:
                return self.engine.run(request)
            except Refused as refused:
                if refused.status != Unavailable.status:
                    raise
                if not told:
                    print(f"headwater: {refused.message}", file=sys.stderr)
                told = True
                time.sleep(INSTALLING_S)

    def wait_for_savepoint(self, job_id: str, trigger_id: str) -> str:
        """Poll until a savepoint is complete; where it lies. Raises ExternalError."""
        tell_at = time.monotonic() + PATIENCE_S
        while not (status := self.engine.savepoint_status(job_id, trigger_id)).done:
            if time.monotonic() > tell_at:
                tell_at = inf
                self._tell_why_it_waits(job_id)
            time.sleep(POLL_S)
        if status.failure is not None or status.location is None:
            msg = status.failure or "savepoint failed: the engine gave no reason; see its log"
            raise ExternalError(msg)
        return status.location

    def _tell_why_it_waits(self, job_id: str) -> None:
        """Say so when not all tasks run, as when no task manager has slots for them."""
        for job in self.engine.jobs():
            if job.id == job_id and job.tasks.get("running", 0) < job.tasks.get("total", 0):
                print(
                    f"headwater: the savepoint waits until the job runs: it is {_state(job)}, with "
                    f"{_tasks(job)} tasks running",
                    file=sys.stderr,
                )


def run(options: argparse.Namespace, target: Target) -> None:
    """Upload a program and start it."""
    job_id = target.run(run_request(options, *uploaded(options, target)))
    start = f"from {options.from_savepoint}" if options.from_savepoint else "with empty state"
    print(f"job {job_id} started {start}")


def uploaded(options: argparse.Namespace, target: Target) -> tuple[str, str | None]:
    """Send a program to the engine; its id there, and where it begins."""
    packed = pack(locate(options.file, options.entry))
    return target.engine.upload(packed.filename, packed.content), packed.entry


def run_request(
    options: argparse.Namespace, artifact_id: str = "", entry: str | None = None
) -> RunRequest:
    """What the options of `run` ask for."""
    program = program_of(options, artifact_id, entry)
    if options.name:
        program = replace(program, settings={**program.settings, NAME_SETTING: options.name})
    return RunRequest(
        program=program,
        job_id=options.job_id,
        savepoint_path=options.from_savepoint,
        allow_non_restored=lost(options),
        accept_missing_input=frozenset(options.accept_missing_input),
        claim=ClaimMode.CLAIM if options.claim else ClaimMode.NO_CLAIM,
    )


def program_of(options: argparse.Namespace, artifact_id: str, entry: str | None) -> Program:
    """The program that options describe."""
    settings = dict(options.settings)
    if options.begin:
        settings[POSITIONS] = "; ".join(options.begin)
    if options.rename:
        settings[RENAMES] = "; ".join(options.rename)
    return Program(
        artifact_id=artifact_id,
        arguments=tuple(options.args),
        parallelism=options.parallelism,
        settings=settings,
        entry=entry,
    )


def lost(options: argparse.Namespace) -> bool | frozenset[str]:
    """What may be lost at a restore."""
    return options.allow_non_restored or frozenset(options.allow_lost)


def list_jobs(options: argparse.Namespace, target: Target) -> None:
    """Print jobs, newest first."""
    jobs = [job for job in target.engine.jobs() if options.all or not job.state.terminal]
    if not jobs:
        print("no jobs" if options.all else "no running jobs; --all shows those that have ended")
        return
    rows = [
        (job.id, job.name, _state(job), _time(job.start_ms), _tasks(job))
        for job in sorted(jobs, key=lambda job: job.start_ms, reverse=True)
    ]
    print(table(("id", "name", "state", "started", "tasks running"), rows))


def _state(job: JobSummary) -> str:
    """Where it stands, and what it waits for."""
    return f"{job.state}, {job.waiting_for}" if job.waiting_for else job.state


def savepoint(options: argparse.Namespace, target: Target) -> None:
    """Take a savepoint and print where it lies."""
    job = target.job(options.job)
    trigger = target.engine.trigger_savepoint(job.id, SavepointRequest(_folder(options.target)))
    print(target.wait_for_savepoint(job.id, trigger))


def stop(options: argparse.Namespace, target: Target) -> None:
    """End a job with a savepoint and print where it lies."""
    job = target.job(options.job)
    request = StopRequest(_folder(options.savepoint_path), drain=options.drain)
    print(target.wait_for_savepoint(job.id, target.engine.stop(job.id, request)))


def cancel(options: argparse.Namespace, target: Target) -> None:
    """Cancel a job."""
    job = target.job(options.job)
    target.engine.cancel(job.id)
    print(f"job {job.id} ({job.name}) is being cancelled")


def rescale(options: argparse.Namespace, target: Target) -> None:
    """Change the parallelism of a job, and wait until it runs so."""
    job, engine = target.job(options.job), target.engine
    trigger = engine.rescale(job.id, RescaleRequest(options.parallelism))
    while not (status := engine.rescale_status(job.id, trigger)).done:
        time.sleep(POLL_S)
    if status.failure is not None:
        raise ExternalError(status.failure)
    print(f"job {job.id} ({job.name}) runs at parallelism {options.parallelism}")


def limit(options: argparse.Namespace, target: Target) -> None:
    """Change how fast sources may read, and print what holds from now on."""
    job, engine = target.job(options.job), target.engine
    if options.rate is None:
        limits = engine.read_limits(job.id)
    else:
        limits = engine.limit_reading(job.id, options.rate[0], options.source, options.rate[1])
    rows = [(one.uid, _limit(one.rows_per_second, one.times_real_time)) for one in limits]
    print(table(("source", "rows per second"), rows))


def _limit(rows: float | None, times: float | None) -> str:
    if times is not None:
        return f"as {times:g}x real time has"
    return "none" if rows is None else f"{rows:g}"


def state(options: argparse.Namespace, target: Target) -> None:
    """Print what one key has in a state of a running job."""
    job = target.job(options.job)
    query = StateQuery(options.operator, options.state, dict(options.key))
    found = target.engine.live_state(job.id, query)
    if not found.is_found:
        print("nothing: the key has no value there", file=sys.stderr)
    print_rows(frame_of(found.rows), options.format)


def _folder(given: str | None) -> str | None:
    """A folder as the engine must see it: a path of this shell, unless it is an address."""
    if given is None or "://" in given or given.startswith("file:"):
        return given
    return str(Path(given).absolute())


def _time(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _tasks(job: JobSummary) -> str:
    return f"{job.tasks.get('running', 0)}/{job.tasks.get('total', 0)}"
