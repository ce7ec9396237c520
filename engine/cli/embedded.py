"""A job in an embedded cluster, from its start to its end: what `python job.py` shows and returns.

    headwater: job words runs at http://127.0.0.1:40123; Ctrl-C ends it        first line
    2013-03-11 11:06:00 · 12,345 rows in · 678 rows out · 4 checkpoints        on a terminal
    headwater: job words finished in 3.2 s: 12,345 rows in, …                  last line

Everything is told on standard error; standard output is the job's own. The line of progress is
left out when the job prints on the terminal, and when nobody is there to see it.

Errors   SystemExit: 1 and the root cause when the job fails, 130 after Ctrl-C, 143 when asked to
         end by SIGTERM, 141 when it prints and nobody reads on, as before `| head`. A cancelled job
         leaves what its sinks have committed, and nothing else.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import NoReturn

from engine.cli.culprit import user_code
from engine.cli.progress import Show, Sight
from engine.cluster.embedded import EmbeddedCluster
from engine.cluster.jobs.master import JobMaster
from engine.errors import HeadwaterError
from engine.graph.jobgraph import JobGraph
from engine.graph.pickling import pickled
from engine.rest.model.jobs import Failure, JobStatus
from engine.rest.model.requests import Program, RunRequest
from engine.stream.calling import JOB_NAME

INTERRUPTED, UNREAD, TERMINATED = 130, 141, 143
STDOUT = 1
"""The workers have it from us."""
LOOK_S = 0.05
LINGER_S = 1.0
"""Whoever asked for a stop polls for its result several times a second."""


class _Terminated(BaseException):
    """SIGTERM came."""


PATIENCE = {
    "restart-strategy.exponential-delay.initial-backoff": "1s",
    "restart-strategy.exponential-delay.attempts-before-reset-backoff": "3",
}
"""Somebody looks on: what fails three times in a row is told, not tried for ever."""


class _Unread(BaseException):
    """The job prints, and whoever read that has gone."""


def run_program(graph: JobGraph, settings: Mapping[str, str]) -> None:
    """Run the job of the program that we are in. Raises SystemExit unless it has finished."""
    run(graph, RunRequest(Program("", tuple(sys.argv[1:]), settings=settings)))


def run(graph: JobGraph, request: RunRequest) -> None:
    """Run a job to its end. Raises SystemExit unless it has finished."""
    settings = {**PATIENCE, **request.program.settings}
    request = replace(request, program=replace(request.program, settings=settings))
    graph = replace(graph, name=request.program.settings.get(JOB_NAME) or graph.name)
    show = Show(graph, sys.stderr)
    try:
        with _quiet_logs(), _told_of_sigterm():
            _run(graph, request, show)
    except HeadwaterError as error:
        _end(f"headwater: {error}")
    except KeyboardInterrupt:
        show.say(f"job {graph.name} was cancelled")
        raise SystemExit(INTERRUPTED) from None
    except _Terminated:
        show.say(f"job {graph.name} was ended")
        raise SystemExit(TERMINATED) from None
    except _Unread:
        # What Python still holds of its own would fail as well, at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
        raise SystemExit(UNREAD) from None


def _run(graph: JobGraph, request: RunRequest, show: Show) -> None:
    content = pickled(graph)
    for warning in graph.warnings:
        show.say(f"warning: {warning}")
    with EmbeddedCluster(slots=max(vertex.parallelism for vertex in graph.vertices)) as cluster:
        job_id = cluster.submit(graph, content, request)
        try:
            show.say(f"job {graph.name} runs at {cluster.url}; Ctrl-C ends it")
            sight = _wait(cluster, job_id, show)
            if sight.stopped_at is not None:
                threading.Event().wait(LINGER_S)
        except (KeyboardInterrupt, _Terminated):
            cluster.look(job_id, JobMaster.cancel)
            _wait(cluster, job_id, show)
            raise
        if _unread(sight):
            show.erase()
            cluster.look(job_id, JobMaster.cancel)
            raise _Unread
    if sight.status is JobStatus.FAILED:
        show.erase()
        _end(_told(graph.name, sight.failure))
    if sight.status is JobStatus.CANCELED:
        _end(f"headwater: job {graph.name} was cancelled through its address")
    if sight.stopped_at is not None:
        show.say(f"job {graph.name} was stopped with savepoint {sight.stopped_at}")
    show.say(f"job {graph.name} finished in {show.seconds:.1f} s: {sight.counts}")


def _wait(cluster: EmbeddedCluster, job_id: str, show: Show) -> Sight:
    """Look until the job has ended, or nobody reads what it prints."""
    pause = threading.Event()
    while not (sight := cluster.look(job_id, Sight.of)).status.terminal and not _unread(sight):
        show.progress(sight)
        pause.wait(LOOK_S)
    return sight


def _unread(sight: Sight) -> bool:
    """Whether the job failed because nobody reads its standard output any more."""
    if not any(failure.name == BrokenPipeError.__name__ for failure in sight.failures):
        return False
    reader = select.poll()
    reader.register(STDOUT, 0)  # only what is always told: errors
    return bool(reader.poll(0))


def _told(name: str, failure: Failure | None) -> str:
    """The root cause of a failed job."""
    if failure is None:
        return f"headwater: job {name} failed; the engine gave no reason"
    lines = [f"headwater: job {name} failed: {failure.name}: {failure.message}"]
    if failure.task is not None:
        lines.append(f"in {failure.task}")
    if failure.traceback:
        lines.append(user_code(failure.traceback))
    return "\n".join(lines)


def _end(text: str) -> NoReturn:
    """End the program with code 1 and a text on standard error, which Python prints."""
    raise SystemExit(text) from None


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """What the job manager logs is told here in other words."""
    logger = logging.getLogger("engine")
    handler, propagates = logging.NullHandler(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates


@contextmanager
def _told_of_sigterm() -> Iterator[None]:
    """Raise where SIGTERM would end the program at once; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def raise_terminated(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
