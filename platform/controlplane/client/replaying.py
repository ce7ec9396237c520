"""headwater --control URL replay …: a replay planned, started, watched, compared and promoted.

plan | start JOB SAVEPOINT VERSION      clone | watch | pause | resume | throttle | tune REPLAY
compare REPLAY                          check | promote | rollback | abandon REPLAY
tolerate REPLAY OUTPUT COLUMN           accept REPLAY DIFFERENCE
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from controlplane.client.connection import Control
from controlplane.client.following import POLL_S, OperationFailed, Options, Row, follow, print_json
from engine.cli.table import table
from engine.errors import UserError

BAR = 30
ERASE = "\x1b[K"
"""What a longer line before left to the right of it."""
GOING_ON = frozenset({"planned", "starting", "replaying"})
COUNTS = ("compared", "equal", "changed", "only_old", "only_new")


def plan(control: Control, options: Options) -> None:
    """Say what would be restored; nothing is started."""
    found = control.get(
        f"jobs/{options.job}/replays/plan",
        savepoint=options.savepoint,
        version=options.version,
        parallelism=options.parallelism,
        **_terms(options),
    )
    if options.json:
        print_json(found)
    else:
        names = ("name", "state", "outcome", "rows")
        print(table(names, [[row[name] or "–" for name in names] for row in found["rows"]]))
        print(f"caught up when {found['caught_up']}; can be rolled back for {found['can_go_back']}")
    if not found["ok"]:
        msg = "; ".join(found["refusals"]) or "this version cannot start from this savepoint"
        raise UserError(msg)


def start(control: Control, options: Options) -> None:
    """Start it, and wait until it replays."""
    body = {
        "savepoint": options.savepoint,
        "version": options.version,
        "parallelism": options.parallelism,
        "until": options.until,
        "dry_run": options.dry_run,
        **_limit(options.limit or "none"),
        **_terms(options),
        "drop": options.drop,
        "accept_missing_input": options.accept_missing_input,
        "positions": dict(options.begin),
    }
    _started(control, options, control.post(f"jobs/{options.job}/replays", body))


def _started(control: Control, options: Options, found: Row) -> None:
    print(f"replay {found['replay']['id']} is {found['replay']['name']}", file=sys.stderr)
    follow(control, options, found["operation"])


def clone(control: Control, options: Options) -> None:
    """Start another one with the same plan, and wait until it replays."""
    body = {"drop": options.drop, "accept_missing_input": options.accept_missing_input}
    _started(control, options, control.post(f"replays/{options.replay}/clone", body))


def watch(control: Control, options: Options) -> None:
    """Follow it until it has caught up or ended, with a bar."""
    found = control.get(f"replays/{options.replay}")
    while found["status"] in GOING_ON:
        print(f"\r{line_of(found)}{ERASE}", end="", file=sys.stderr, flush=True)
        time.sleep(POLL_S)
        found = control.get(f"replays/{options.replay}")
    print(f"\r{line_of(found)}{ERASE}", file=sys.stderr)
    if options.json:
        print_json(found)
    if found["status"] == "failed":
        msg = f"replay {found['name']} of {found['job']} failed: {found['failure']}"
        raise OperationFailed(msg)


def line_of(found: Row) -> str:
    """How far it is, in one line.

    >>> line_of({"name": "r-7", "status": "replaying", "percent": 50.0, "speed": 1234.5,
    ...          "event_time_now": "2013-06-01T00:00:00Z", "note": "", "paused": False})
    'r-7 replaying [===============               ]  50 %, at 2013-06-01 00:00, 1,234× real time'
    """
    percent = found["percent"] or 0.0
    bar = "=" * int(BAR * percent / 100)
    parts = [f"{found['name']} {found['status'].replace('_', ' ')} [{bar:<{BAR}}] {percent:3.0f} %"]
    if found["event_time_now"]:
        parts.append(f"at {found['event_time_now'][:16].replace('T', ' ')}")
    if found["speed"] is not None:
        parts.append(f"{found['speed']:,.0f}× real time")
    if found["paused"]:
        parts.append("paused")
    return ", ".join([*parts, *([found["note"]] if found["note"] else [])])


def pause(control: Control, options: Options) -> None:
    """Let it read nothing for now."""
    _said(options, control.post(f"replays/{options.replay}/pause", {"paused": True}))


def resume(control: Control, options: Options) -> None:
    """Let it go on."""
    _said(options, control.post(f"replays/{options.replay}/pause", {"paused": False}))


def throttle(control: Control, options: Options) -> None:
    """Let it read at most so many rows a second, or so many times as fast as real time."""
    _said(options, control.post(f"replays/{options.replay}/limit", _limit(options.rate)))


def _limit(text: str) -> dict[str, float | None]:
    rows = None if text == "none" or text.endswith("x") else float(text)
    times = float(text[:-1]) if text.endswith("x") else None
    return {"rows_per_second": rows, "times_real_time": times}


def tune(control: Control, options: Options) -> None:
    """Change when it has caught up, and how long it can be rolled back."""
    found = control.post(f"replays/{options.replay}/tuning", _terms(options))
    if options.json:
        print_json(found)
        return
    within = found["level_within_s"]
    near = "as the live job's pace says" if within is None else f"within {within:g} s of it"
    print(
        f"{found['name']} has caught up when it is level ({near}) for {found['level_for_s']:g} s; "
        f"promoted, it can be rolled back for {found['back_days']:g} days"
    )


def _terms(options: Options) -> dict[str, float | str]:
    given = {
        "level_within_s": options.within,
        "level_for_s": options.level_for,
        "back_days": options.back_days,
    }
    return {name: value for name, value in given.items() if value is not None}


def _said(options: Options, found: Row) -> None:
    if options.json:
        print_json(found)
    else:
        rows, times = found["read_limit"], found["speed_limit"]
        how = "as fast as it can" if rows is None else f"at most {rows:,.15g} rows a second"
        how = how if times is None else f"at most {times:,.15g}× real time"
        print(f"{found['name']} {'is paused' if found['paused'] else f'reads {how}'}")


def compare(control: Control, options: Options) -> None:
    """Tell what differs between old and new output."""
    found = control.get(f"replays/{options.replay}/comparison")
    if options.json:
        print_json(found)
        return
    print(table(("output", *COUNTS), [[one["name"], *(one[n] for n in COUNTS)] for one in found]))
    for one in found:
        if one["why_not"]:
            print(f"{one['name']} is not compared: {one['why_not']}")
    rows = [
        [
            each["id"],
            each["verdict"],
            ", ".join(each["fields"]),
            each["rows"],
            each["accepted_by"] or "–",
            each["example"],
        ]
        for one in found
        for each in one["differences"]
    ]
    if rows:
        print(table(("id", "verdict", "fields", "rows", "accepted by", "example"), rows))


def tolerate(control: Control, options: Options) -> None:
    """Change how far the numbers of a column may be apart."""
    body = {"output": options.output, "column": options.column}
    body |= {"absolute": options.absolute, "relative": options.relative}
    control.post(f"replays/{options.replay}/tolerance", body)
    print(f"{options.output} is compared again")


def accept(control: Control, options: Options) -> None:
    """Accept one kind of differences."""
    address = f"replays/{options.replay}/differences/{options.difference}/accept"
    left = control.post(address)["open"]
    print(f"accepted; {left} kinds of differences are left")


def check(control: Control, options: Options) -> None:
    """Tell whether it can be promoted, condition by condition; once it is, rolled back."""
    found = control.get(f"replays/{options.replay}/readiness")
    if options.json:
        print_json(found)
        return
    is_promoted = found["rollback"]["conditions"][0]["state"] == "met"
    answer = found["rollback" if is_promoted else "promotion"]
    rows = [
        [one["title"], one["state"], "; ".join(filter(None, (one["text"], one["todo"])))]
        for one in answer["conditions"]
    ]
    print(table(("condition", "state", "how it stands"), rows))
    if not is_promoted:
        print(f"expected pause: {found['expected_pause']}")
    print(answer["why_not"] or f"it can be {'rolled back' if is_promoted else 'promoted'}")


def promote(control: Control, options: Options) -> None:
    """Let its version take the place of the live one."""
    body = {"at": options.at}
    follow(control, options, control.post(f"replays/{options.replay}/promote", body))


def rollback(control: Control, options: Options) -> None:
    """Let the version before take its place again."""
    follow(control, options, control.post(f"replays/{options.replay}/rollback"))


def abandon(control: Control, options: Options) -> None:
    """End it; the live job is not touched."""
    follow(control, options, control.post(f"replays/{options.replay}/abandon"))


ACTS: dict[str, Callable[[Control, Options], None]] = {
    act.__name__: act
    for act in (
        plan,
        start,
        clone,
        watch,
        pause,
        resume,
        throttle,
        tune,
        compare,
        tolerate,
        accept,
        check,
        promote,
        rollback,
        abandon,
    )
}
