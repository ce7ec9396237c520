"""The grammar of the command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from engine.rest.client import DEFAULT_URL

URL_VARIABLE = "HEADWATER_ENGINE_URL"
TOKEN_VARIABLE = "HEADWATER_ENGINE_TOKEN"  # noqa: S105

JOB = "id of a job, or the beginning of its id or name, when only one job fits"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read arguments; what follows `--` is the job's own. Exits with 2 on wrong usage."""
    ours, theirs = _split(argv)
    options = _parser().parse_args(ours)
    options.args = theirs
    options.token = os.environ.get(TOKEN_VARIABLE)
    return options


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    given = list(argv)
    if "--" not in given:
        return given, []
    at = given.index("--")
    return given[:at], given[at + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headwater",
        description="Run and operate stateful stream jobs.",
        epilog="Also: headwater jobmanager --help, headwater taskmanager --help.",
    )
    parser.add_argument(
        "--url",
        default=os.environ.get(URL_VARIABLE, DEFAULT_URL),
        help=f"address of the engine (${URL_VARIABLE}, {DEFAULT_URL})",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_run(commands.add_parser("run", help="start a job file"))
    _add_list(commands.add_parser("list", help="list jobs"))
    _add_savepoint(commands.add_parser("savepoint", help="take a savepoint of a job"))
    _add_stop(commands.add_parser("stop", help="end a job with a savepoint"))
    commands.add_parser("cancel", help="end a job without a savepoint").add_argument(
        "job", help=JOB
    )
    _add_plan(commands.add_parser("plan", help="show the graph of a job file; runs no job"))
    state = commands.add_parser("state", help="look into a savepoint or checkpoint")
    _add_show(state.add_subparsers(dest="verb", required=True, metavar="VERB"))
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("file", help="job file; its own arguments follow --")
    run.add_argument("-s", "--from-savepoint", metavar="PATH", help="state to start from")
    _add_program(run)
    run.add_argument("--name", help="name of the job, instead of its own")
    run.add_argument(
        "-n", "--allow-non-restored", action="store_true", help="state without an operator is lost"
    )
    run.add_argument("--job-id", metavar="HEX", help="32 hex digits; a repeated run is refused")


def _add_list(listing: argparse.ArgumentParser) -> None:
    listing.add_argument("-a", "--all", action="store_true", help="also jobs that have ended")


def _add_savepoint(savepoint: argparse.ArgumentParser) -> None:
    savepoint.add_argument("job", help=JOB)
    savepoint.add_argument("target", nargs="?", help="folder that will hold it")


def _add_stop(stop: argparse.ArgumentParser) -> None:
    stop.add_argument("job", help=JOB)
    stop.add_argument(
        "--drain", action="store_true", help="fire every window: the job is not to be resumed"
    )
    stop.add_argument("-p", "--savepoint-path", metavar="DIR", help="folder that will hold it")


def _add_plan(plan: argparse.ArgumentParser) -> None:
    plan.add_argument("file", help="job file; its own arguments follow --")
    _add_program(plan)
    plan.add_argument("--json", action="store_true", help="the whole plan, for programs")


def _add_show(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    show = verbs.add_parser("show", help="what a snapshot holds")
    show.add_argument("path", help="folder of the snapshot")
    show.add_argument("--json", action="store_true", help="the whole manifest, for programs")


def _add_program(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-p", "--parallelism", type=_positive, metavar="N", help="subtasks of each operator"
    )
    command.add_argument(
        "-D",
        dest="settings",
        action="append",
        type=_setting,
        default=[],
        metavar="KEY=VALUE",
        help="a setting, e.g. execution.checkpointing.interval=5s",
    )


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        msg = f"must be a whole number from 1: got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        msg = f"must be KEY=VALUE: got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return key, value
