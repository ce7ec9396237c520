"""The grammar of the command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from engine.rest.client import DEFAULT_URL

URL_VARIABLE = "HEADWATER_ENGINE_URL"

_Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

SNAPSHOT = "folder of a savepoint or checkpoint"

PROGRAM = (
    "job file, folder, zip, wheel, package.module or package.module:function; "
    "the job's own arguments follow --"
)

JOB = "id of a job, or the beginning of its id or name, when only one job fits"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read arguments; what follows `--` is the job's own. Exits with 2 on wrong usage."""
    ours, theirs = _split(argv)
    options = _parser().parse_args(_looking(ours))
    options.args = theirs
    return options


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    given = list(argv)
    if "--" not in given:
        return given, []
    at = given.index("--")
    return given[:at], given[at + 1 :]


def _looking(given: list[str]) -> list[str]:
    """`savepoint show …` looks into one, as `state show …` does; `savepoint JOB` takes one."""
    for at, (word, verb) in enumerate(pairwise(given)):
        if word == "savepoint" and verb in LOOKS:
            return [*given[:at], "state", *given[at + 1 :]]
    return given


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
    _add_limit(commands.add_parser("limit", help="how fast the sources of a job may read"))
    _add_rescale(commands.add_parser("rescale", help="run a job on at another parallelism"))
    _add_preflight(
        commands.add_parser("preflight", help="what a job file would restore; runs no job")
    )
    _add_plan(commands.add_parser("plan", help="show the graph of a job file; runs no job"))
    state = commands.add_parser(
        "state", help="look into a savepoint or checkpoint; also: headwater savepoint show | …"
    )
    verbs = state.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_get(verbs.add_parser("get", help="what one key has in a state of a running job"))
    for name, add in LOOKS.items():
        add(verbs)
        _add_remote(verbs.choices[name])
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("file", help=PROGRAM)
    run.add_argument("-s", "--from-savepoint", metavar="PATH", help="state to start from")
    _add_program(run)
    _add_restore(run)
    run.add_argument(
        "--claim",
        action="store_true",
        help="the engine owns the snapshot from now on, and deletes it like a checkpoint",
    )
    run.add_argument("--name", help="name of the job, instead of its own")
    run.add_argument(
        "--embedded", action="store_true", help="in a cluster of its own, which ends with the job"
    )
    run.add_argument("--job-id", metavar="HEX", help="32 hex digits; a repeated run is refused")


def _add_preflight(preflight: argparse.ArgumentParser) -> None:
    preflight.add_argument("file", help=PROGRAM)
    preflight.add_argument(
        "-s", "--from-savepoint", metavar="PATH", required=True, help=f"{SNAPSHOT} to start from"
    )
    _add_program(preflight)
    _add_restore(preflight)
    _add_remote(preflight)


def _add_remote(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--remote", action="store_true", help="let the engine at --url look, not this machine"
    )


def _add_restore(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-n", "--allow-non-restored", action="store_true", help="state without an operator is lost"
    )
    command.add_argument(
        "--allow-lost",
        action="append",
        default=[],
        metavar="UID[/STATE]",
        help="only the state of this operator, or only this state, may be lost",
    )
    command.add_argument(
        "--accept-missing-input",
        action="append",
        default=[],
        metavar="UID",
        help="this source may go on without input that is not there any more",
    )
    command.add_argument(
        "--begin",
        action="append",
        default=[],
        metavar="UID=WHERE",
        help="a source begins at its `earliest` row, or at a time: 2013-03-01T00:00:00Z",
    )
    command.add_argument(
        "--rename",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="uid=new, uid/state=new or uid/state/column=new: what the job calls it now",
    )


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


def _add_limit(limit: argparse.ArgumentParser) -> None:
    limit.add_argument("job", help=JOB)
    limit.add_argument(
        "rate",
        nargs="?",
        type=_rate,
        help="rows per second of each source, or times real time, 60x; 0 pauses, none: no limit",
    )
    limit.add_argument("--source", metavar="UID", help="only this source")


def _add_rescale(rescale: argparse.ArgumentParser) -> None:
    rescale.add_argument("job", help=JOB)
    rescale.add_argument(
        "parallelism", type=_positive, help="of all vertices but those with one of their own"
    )


def _add_plan(plan: argparse.ArgumentParser) -> None:
    plan.add_argument("file", help=PROGRAM)
    _add_program(plan)
    plan.add_argument("--json", action="store_true", help="the whole plan, for programs")


def _add_get(get: argparse.ArgumentParser) -> None:
    get.add_argument("job", help=JOB)
    _add_question(get)
    _add_format(get)


def _add_show(verbs: _Verbs) -> None:
    show = verbs.add_parser("show", help="what a snapshot holds")
    show.add_argument("path", help=SNAPSHOT)
    show.add_argument("--json", action="store_true", help="the whole manifest, for programs")


def _add_verify(verbs: _Verbs) -> None:
    verify = verbs.add_parser("verify", help="whether every file is as it was written")
    verify.add_argument("path", help=SNAPSHOT)


def _add_diff(verbs: _Verbs) -> None:
    diff = verbs.add_parser("diff", help="in which rows two snapshots differ")
    diff.add_argument("left", help=SNAPSHOT)
    diff.add_argument("right", help=SNAPSHOT)
    diff.add_argument(
        "--examples", type=_count, default=3, metavar="N", help="rows to show of each state (3)"
    )
    diff.add_argument("--json", action="store_true", help="for programs")


def _add_read(verbs: _Verbs) -> None:
    read = verbs.add_parser("read", help="the rows of one state")
    read.add_argument("path", help=SNAPSHOT)
    _add_question(read)
    read.add_argument("--sql", metavar="QUERY", help="a query over the table `state`")
    read.add_argument("--limit", type=_positive, default=20, metavar="N", help="rows to print (20)")
    read.add_argument(
        "--all", dest="limit", action="store_const", const=None, help="print every row"
    )
    _add_format(read)


def _add_question(command: argparse.ArgumentParser) -> None:
    command.add_argument("--operator", required=True, metavar="UID", help="whose state")
    command.add_argument("--state", required=True, metavar="NAME", help="which state")
    command.add_argument(
        "--key",
        action="append",
        type=_setting,
        default=[],
        metavar="COLUMN=VALUE",
        help="only this key; once per column of the key",
    )


def _add_format(command: argparse.ArgumentParser) -> None:
    command.add_argument("--format", choices=("table", "csv", "jsonl"), default="table")


LOOKS: Mapping[str, Callable[[_Verbs], None]] = {
    "show": _add_show,
    "verify": _add_verify,
    "diff": _add_diff,
    "read": _add_read,
}
"""The verbs that look into a snapshot."""


def _add_program(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-c",
        "--entry",
        "--class",
        dest="entry",
        metavar="ENTRY",
        help="where a folder, zip or wheel begins: package.module or package.module:function",
    )
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


def _rate(text: str) -> tuple[float | None, float | None]:
    """Rows per second, and times real time."""
    if text == "none":
        return None, None
    try:
        return (None, float(text[:-1])) if text.endswith("x") else (float(text), None)
    except ValueError:
        msg = f"must be rows per second, times real time (60x), or none: got {text!r}"
        raise argparse.ArgumentTypeError(msg) from None


def _count(text: str) -> int:
    return 0 if text == "0" else _positive(text)


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        msg = f"must be KEY=VALUE: got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return key, value
