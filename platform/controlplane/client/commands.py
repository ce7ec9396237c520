"""What each command asks for, and how the answer is told.

Order    a command that was interrupted goes on in the control plane; `watch` follows it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from controlplane.client.connection import Control
from controlplane.client.following import Options, Row, follow, print_json, wait
from controlplane.client.replaying import ACTS
from engine.cli.table import table
from engine.errors import ConfigError


def me(control: Control, options: Options) -> None:
    """Who the token belongs to."""
    found = control.get("me")
    if options.json:
        print_json(found)
        return
    print(f"{found['user']}, token {found['token']}")
    for team, role in found["teams"].items():
        print(f"  {role} of {team}")


def jobs(control: Control, options: Options) -> None:
    """Jobs with the state of their run."""
    found = control.each("jobs", options.most, team=options.team)
    _print_rows(options, found, ("name", "team", "state", "role"), run=("version", "parallelism"))


def job(control: Control, options: Options) -> None:
    """Everything about one job."""
    print_json(control.get(f"jobs/{options.job}"))


def versions(control: Control, options: Options) -> None:
    """Versions, newest first."""
    found = control.each(f"jobs/{options.job}/versions", options.most)
    _print_rows(options, found, ("number", "filename", "size_bytes", "created_at", "note"))


def runs(control: Control, options: Options) -> None:
    """Runs, newest first."""
    found = control.each(f"jobs/{options.job}/runs", options.most)
    names = ("id", "purpose", "version", "state", "restored_from", "started_at", "ended_at")
    _print_rows(options, found, names)


def savepoints(control: Control, options: Options) -> None:
    """Savepoints, newest first."""
    found = control.each(f"jobs/{options.job}/savepoints", options.most)
    names = ("id", "status", "origin", "event_time", "size_bytes", "version", "label")
    _print_rows(options, found, names)


def operations(control: Control, options: Options) -> None:
    """Operations, newest first."""
    found = control.each("operations", options.most, job=options.job, state=options.state)
    _print_rows(options, found, ("id", "kind", "job", "state", "created_at", "actor"))


def replays(control: Control, options: Options) -> None:
    """Replays, newest first."""
    found = control.each("replays", options.most, job=options.job)
    names = ("id", "name", "job", "status", "savepoint", "version", "speed", "note")
    _print_rows(options, found, names)


def audit(control: Control, options: Options) -> None:
    """The audit log, newest first."""
    asked = {"job": options.job, "actor": options.actor, "action": options.action}
    found = control.each("audit", options.most, **asked)
    _print_rows(options, found, ("at", "actor", "action", "target", "reason"))


def deploy(control: Control, options: Options) -> None:
    """Make the job, then start it."""
    name, content = _file(options.file)
    control.upload(
        "jobs",
        name,
        content,
        name=options.job,
        team=options.team,
        parallelism=options.parallelism,
        cluster=options.cluster,
    )
    follow(control, options, control.post(f"jobs/{options.job}/start"))


def upload(control: Control, options: Options) -> None:
    """Add a version."""
    name, content = _file(options.file)
    found = control.upload(f"jobs/{options.job}/versions", name, content, note=options.note)
    if options.json:
        print_json(found)
    else:
        print(f"version {found['number']} of {options.job} is here")


def start(control: Control, options: Options) -> None:
    """Start a version."""
    body = {"version": options.version, "savepoint": options.savepoint, **_agreed(options)}
    follow(control, options, control.post(f"jobs/{options.job}/start", body))


def upgrade(control: Control, options: Options) -> None:
    """Put another version in the place of what runs."""
    body = {
        "version": options.version,
        "savepoint": options.savepoint,
        "mode": options.mode,
        **_agreed(options),
    }
    follow(control, options, control.post(f"jobs/{options.job}/upgrade", body))


def rollback(control: Control, options: Options) -> None:
    """Go back to the last healthy version."""
    body = {"accept_missing_input": options.accept_missing_input}
    follow(control, options, control.post(f"jobs/{options.job}/rollback", body))


def _agreed(options: Options) -> dict[str, list[str]]:
    return {"drop": options.drop, "accept_missing_input": options.accept_missing_input}


def rescale(control: Control, options: Options) -> None:
    """Run on at another parallelism."""
    body = {"parallelism": options.parallelism}
    follow(control, options, control.post(f"jobs/{options.job}/rescale", body))


def move(control: Control, options: Options) -> None:
    """Run on another cluster; what does not run is only noted."""
    body = {"cluster": options.cluster, "reason": options.reason}
    found = control.post(f"jobs/{options.job}/move", body)
    if "kind" in found:
        follow(control, options, found)
    elif options.json:
        print_json(found)
    else:
        print(f"{options.job} starts on {options.cluster} from now on")


def give(control: Control, options: Options) -> None:
    """Give the job to another team."""
    body = {"team": options.team, "reason": options.reason}
    found = control.post(f"jobs/{options.job}/team", body)
    if options.json:
        print_json(found)
    else:
        print(f"{options.job} is {options.team}'s from now on")


def stop(control: Control, options: Options) -> None:
    """Stop with a savepoint."""
    follow(control, options, control.post(f"jobs/{options.job}/stop", {"drain": options.drain}))


def cancel(control: Control, options: Options) -> None:
    """End at once."""
    body = {"reason": options.reason}
    follow(control, options, control.post(f"jobs/{options.job}/cancel", body))


def savepoint(control: Control, options: Options) -> None:
    """Take a savepoint."""
    body = {"label": options.label}
    follow(control, options, control.post(f"jobs/{options.job}/savepoints", body))


def replay(control: Control, options: Options) -> None:
    """Do something with a replay."""
    ACTS[options.act](control, options)


def watch(control: Control, options: Options) -> None:
    """Follow an operation to its end."""
    wait(control, options, control.get(f"operations/{options.operation}"))


def undo(control: Control, options: Options) -> None:
    """Cancel an operation; that it ends without its result is what was wanted."""
    found = control.post(f"operations/{options.operation}/cancel")
    if options.json:
        print_json(found)
    else:
        print(f"{found['kind']} of {found['job']} is being cancelled")


COMMANDS: dict[str, Callable[[Control, Options], None]] = {
    command.__name__: command
    for command in (
        me,
        jobs,
        job,
        versions,
        runs,
        savepoints,
        operations,
        replays,
        audit,
        deploy,
        upload,
        start,
        upgrade,
        rollback,
        rescale,
        move,
        give,
        stop,
        cancel,
        savepoint,
        replay,
        watch,
        undo,
    )
}


def _file(path: str) -> tuple[str, bytes]:
    """Name and content. Raises ConfigError."""
    try:
        return Path(path).name, Path(path).read_bytes()
    except OSError as error:
        msg = f"job file {path} cannot be read: {error.strerror}; give a .py, .zip, .whl or .jar"
        raise ConfigError(msg) from error


def _print_rows(
    options: Options, rows: Iterable[Row], names: Sequence[str], run: Sequence[str] = ()
) -> None:
    """A table; with `run`, also some of what each row says of its run."""
    found = list(rows)
    if options.json:
        print_json(found)
        return
    lines = [
        [
            *(_cell(row[name]) for name in names),
            *(_cell((row["run"] or {}).get(name)) for name in run),
        ]
        for row in found
    ]
    print(table((*names, *run), lines))


def _cell(value: object) -> object:
    return "–" if value is None else value
