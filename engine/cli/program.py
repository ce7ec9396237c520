"""Entry of the command line: which command, which engine, and how an error is told.

    headwater [--url URL] COMMAND …      an engine at URL, or $HEADWATER_ENGINE_URL
    headwater plan | state …             files here; no engine needed (also: savepoint show …)
    headwater state … --remote           the same, seen by the engine
    headwater run --embedded PROGRAM     in a cluster of its own, like python PROGRAM
    headwater jobmanager | taskmanager   be a part of an engine

Errors   one sentence on stderr, exit code 1; wrong usage is 2; Ctrl-C is 130. Never a traceback for
         what the engine raises on purpose.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from engine.cli import local, remote
from engine.cli.arguments import parse
from engine.cli.looks import Here, There
from engine.cli.preflight import preflight, remote_preflight
from engine.cli.remote import Target
from engine.cli.snapshots import VERBS as LOOKS
from engine.errors import HeadwaterError
from engine.programs.loading import load, opened
from engine.rest.client import EngineClient
from engine.rest.tokens import token_of

INTERRUPTED = 130

LOCAL = {"plan": local.plan, "preflight": preflight}
REMOTE = {
    "run": remote.run,
    "list": remote.list_jobs,
    "savepoint": remote.savepoint,
    "stop": remote.stop,
    "cancel": remote.cancel,
    "preflight": remote_preflight,
    "state": remote.state,
    "limit": remote.limit,
    "rescale": remote.rescale,
}


def main(
    argv: Sequence[str] | None = None,
    connect: Callable[[str, str | None], EngineClient] = EngineClient,
) -> int:
    """Run one command and return its exit code. `connect` takes an address and a token."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given and given[0] in SERVERS:
        return SERVERS[given[0]](given[1:])
    options = parse(given)
    try:
        if options.command == "state" and options.verb in LOOKS:
            return _look(options, connect)
        if options.command == "run" and options.embedded:
            _run_embedded(options)
        elif options.command in LOCAL and not getattr(options, "remote", False):
            LOCAL[options.command](options)
        else:
            with connect(options.url, token_of(os.environ)) as engine:
                REMOTE[options.command](options, Target(engine))
    except HeadwaterError as error:
        print(f"headwater: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _look(options: argparse.Namespace, connect: Callable[[str, str | None], EngineClient]) -> int:
    if not options.remote:
        return LOOKS[options.verb](options, Here())
    with connect(options.url, token_of(os.environ)) as engine:
        return LOOKS[options.verb](options, There(engine))


def _run_embedded(options: argparse.Namespace) -> None:
    # Imported only when asked for: it holds a whole engine.
    from engine.cli import embedded
    from engine.cluster.programs.artifacts import settings_of

    request = remote.run_request(options)
    with opened(options.file, options.entry) as (code, entry):
        graph = load(
            code, entry, options.args, settings_of(request.program), by_value=code.is_file()
        )
        if code.is_dir():
            sys.path.insert(0, str(code.resolve()))  # workers import what this process could
        embedded.run(graph, request)


def _job_manager(argv: Sequence[str]) -> int:
    # Imported only when asked for: a client need not load a server.
    from engine.cluster import jobmanager

    return jobmanager.main(argv)


def _task_manager(argv: Sequence[str]) -> int:
    from engine.cluster import taskmanager

    return taskmanager.main(argv)


SERVERS: dict[str, Callable[[Sequence[str]], int]] = {
    "jobmanager": _job_manager,
    "taskmanager": _task_manager,
}
