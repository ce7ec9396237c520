"""The grammar of `headwater --control URL replay …`."""

from __future__ import annotations

import argparse

JOB = "name of a job"
ONE = {
    "clone": "start another one like it",
    "watch": "follow it until it has caught up",
    "pause": "let it read nothing for now",
    "resume": "let it go on",
    "throttle": "let it read at most so fast",
    "tune": "change when it has caught up, and how long it can be rolled back",
    "compare": "what differs between old and new output",
    "tolerate": "how far numbers of a column may be apart; neither value: equal",
    "accept": "say that the new version intends some differences",
    "check": "whether it can be promoted, or rolled back, and what hinders that",
    "promote": "let its version take the place of the live one",
    "rollback": "let the version before take its place again",
    "abandon": "end it",
}
RATE = "rows per second, times real time (60x), or none"
WAITING = ("start", "clone", "promote", "rollback", "abandon")


def add_replay(parser: argparse.ArgumentParser) -> None:
    """What can be done with a replay."""
    acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    for name, what in (("plan", "say what would be restored"), ("start", "start a replay")):
        act = acts.add_parser(name, help=what)
        act.add_argument("job", help=JOB)
        act.add_argument("savepoint", type=count, help="id of the savepoint")
        act.add_argument("version", type=count, help="number of the version")
        act.add_argument("-p", "--parallelism", type=count, default=1, metavar="N")
    start = acts.choices["start"]
    start.add_argument("--until", metavar="TIME", help="end there: 2013-06-01T00:00:00Z")
    start.add_argument("--dry-run", action="store_true", help="sinks write nothing")
    start.add_argument("--limit", type=rate, metavar="RATE", help=RATE)
    for name, what in ONE.items():
        acts.add_parser(name, help=what).add_argument("replay", type=count, help="id of the replay")
    start.add_argument(
        "--begin",
        action="append",
        type=beginning,
        default=[],
        metavar="UID=WHERE",
        help="a source begins at its `earliest` row, or at a time: 2013-03-01T00:00:00Z",
    )
    for name in ("start", "clone"):
        add_drop(acts.choices[name])
        add_accept(acts.choices[name])
    acts.choices["throttle"].add_argument("rate", type=rate, help=RATE)
    acts.choices["accept"].add_argument("difference", type=count, help="id, as compare tells it")
    promote = acts.choices["promote"]
    promote.add_argument("--at", metavar="TIME", help="cut there: 2013-12-01T00:00:00Z, or soon")
    tolerate = acts.choices["tolerate"]
    tolerate.add_argument("output", help="as compare tells it")
    tolerate.add_argument("column", help="of numbers")
    tolerate.add_argument("--absolute", type=seconds, metavar="NUMBER", help="by so much")
    tolerate.add_argument("--relative", type=seconds, metavar="PART", help="of the old value")
    for name in ("plan", "start", "tune"):
        _add_terms(acts.choices[name])
    for name in WAITING:
        acts.choices[name].add_argument(
            "--no-wait", action="store_true", help="say which operation it is, and go"
        )


def _add_terms(act: argparse.ArgumentParser) -> None:
    act.add_argument("--within", type=within, metavar="SECONDS", help="behind live, or pace")
    act.add_argument("--for", type=seconds, dest="level_for", metavar="SECONDS", help="level")
    act.add_argument("--back-days", type=seconds, metavar="DAYS", help="to roll back in")


def add_drop(act: argparse.ArgumentParser) -> None:
    """State that may be left behind."""
    act.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="UID[/STATE]",
        help="state that may be left behind; as often as needed",
    )


def add_accept(act: argparse.ArgumentParser) -> None:
    """Input that may be missing."""
    act.add_argument(
        "--accept-missing-input",
        action="append",
        default=[],
        metavar="UID",
        help="source that may go on without input which is not there any more",
    )


def count(text: str) -> int:
    """A whole number from 1."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        msg = f"must be a whole number from 1: got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def beginning(text: str) -> tuple[str, str]:
    """A source and where it begins."""
    uid, _, where = text.partition("=")
    if not (uid and where):
        msg = f"must be source=earliest or source=TIME: got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return uid, where


def seconds(text: str) -> float:
    """A number from 0."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        msg = f"must be a number from 0: got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return number


def within(text: str) -> float | str:
    """Seconds, or pace."""
    return text if text == "pace" else seconds(text)


def rate(text: str) -> str:
    """Rows per second, times real time, or none."""
    try:
        right = text == "none" or 0 < float(text.removesuffix("x")) < float("inf")
    except ValueError:
        right = False
    if not right:
        msg = f"must be rows per second, times real time (60x), or none: got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return text
