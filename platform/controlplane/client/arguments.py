"""The grammar of `headwater --control URL COMMAND …`; that of replays is `replay_arguments.py`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from controlplane.client.replay_arguments import JOB, add_accept, add_drop, add_replay, count

FILE = "job file: .py, .zip or .whl; .jar for Apache Flink"
TOKEN_VARIABLE = "HEADWATER_TOKEN"  # noqa: S105 - a name

WAITING = (
    "deploy",
    "start",
    "upgrade",
    "rollback",
    "rescale",
    "move",
    "stop",
    "cancel",
    "savepoint",
)
"""What takes long: the command waits for its end unless it is told not to."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read arguments. Exits with 2 on wrong usage."""
    return _parser().parse_args(argv)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headwater --control URL", description="Operate jobs through a control plane."
    )
    parser.add_argument("--control", metavar="URL", required=True, help="its address")
    parser.add_argument(
        "--token-file", metavar="FILE", help=f"file that holds an API token (${TOKEN_VARIABLE})"
    )
    parser.add_argument("--json", action="store_true", help="answers as JSON, for programs")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("me", help="who the token belongs to, and what it may do")
    _add_lists(commands)
    _add_actions(commands)
    return parser


_Commands = argparse._SubParsersAction


def _add_lists(commands: _Commands[argparse.ArgumentParser]) -> None:
    jobs = commands.add_parser("jobs", help="list jobs")
    jobs.add_argument("--team", default="", help="only of this team")
    commands.add_parser("job", help="one job").add_argument("job", help=JOB)
    for name, what in (("versions", "versions"), ("runs", "runs"), ("savepoints", "savepoints")):
        commands.add_parser(name, help=f"list the {what} of a job").add_argument("job", help=JOB)
    operations = commands.add_parser("operations", help="list operations")
    operations.add_argument("--job", default="", help="only of this job")
    states = ("unfinished", "succeeded", "failed", "cancelled")
    operations.add_argument("--state", default="", choices=states, help="only in this state")
    replays = commands.add_parser("replays", help="list replays")
    replays.add_argument("--job", default="", help="only of this job")
    audit = commands.add_parser("audit", help="who did what, newest first")
    for name in ("job", "actor", "action"):
        audit.add_argument(f"--{name}", default="", help=f"only of this {name}")
    for one in ("versions", "runs", "savepoints", "operations", "replays", "audit", "jobs"):
        commands.choices[one].add_argument(
            "-n", type=count, default=50, dest="most", metavar="N", help="at most so many (50)"
        )


def _add_actions(commands: _Commands[argparse.ArgumentParser]) -> None:
    deploy = commands.add_parser("deploy", help="make a job of a file, and start it")
    deploy.add_argument("job", help=JOB)
    deploy.add_argument("file", help=FILE)
    deploy.add_argument("--team", required=True, help="whose job it is")
    deploy.add_argument("-p", "--parallelism", type=count, default=1, metavar="N")
    deploy.add_argument("--cluster", default="", help="where; else the first that can run the file")
    upload = commands.add_parser("upload", help="add a version; nothing runs it yet")
    upload.add_argument("job", help=JOB)
    upload.add_argument("file", help=FILE)
    upload.add_argument("--note", default="", help="what changed")
    start = commands.add_parser("start", help="start a job")
    start.add_argument("job", help=JOB)
    start.add_argument("--version", type=count, metavar="N", help="which; else the newest")
    upgrade = commands.add_parser("upgrade", help="put another version in the place of what runs")
    upgrade.add_argument("job", help=JOB)
    upgrade.add_argument("version", type=count, help="number of the version")
    for one in (start, upgrade):
        one.add_argument("--savepoint", type=count, metavar="ID", help="what to start from")
        add_drop(one)
    upgrade.add_argument("--mode", default="savepoint", help="savepoint, last_state or stateless")
    rollback = commands.add_parser("rollback", help="go back to the last healthy version")
    rollback.add_argument("job", help=JOB)
    for one in (start, upgrade, rollback):
        add_accept(one)
    rescale = commands.add_parser("rescale", help="run a job on at another parallelism")
    rescale.add_argument("job", help=JOB)
    rescale.add_argument("parallelism", type=count)
    move = commands.add_parser("move", help="run a job on another cluster")
    move.add_argument("job", help=JOB)
    move.add_argument("cluster", help="name of the cluster")
    give = commands.add_parser("give", help="give a job to another team")
    give.add_argument("job", help=JOB)
    give.add_argument("team", help="name of the team")
    stop = commands.add_parser("stop", help="end a job with a savepoint")
    stop.add_argument("job", help=JOB)
    stop.add_argument("--drain", action="store_true", help="fire every open window first")
    cancel = commands.add_parser("cancel", help="end a job without a savepoint")
    cancel.add_argument("job", help=JOB)
    for one in (move, give, cancel):
        one.add_argument("--reason", default="", help="why, for the audit log")
    savepoint = commands.add_parser("savepoint", help="take a savepoint of a job")
    savepoint.add_argument("job", help=JOB)
    savepoint.add_argument("--label", default="", help="what for")
    add_replay(commands.add_parser("replay", help="run a version from a savepoint beside the job"))
    for name in WAITING:
        commands.choices[name].add_argument(
            "--no-wait", action="store_true", help="say which operation it is, and go"
        )
    for name, what in (
        ("watch", "follow an operation to its end"),
        ("undo", "cancel an operation"),
    ):
        commands.add_parser(name, help=what).add_argument("operation", help="id of the operation")
