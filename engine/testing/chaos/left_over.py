"""What a cluster has left behind: processes, sockets, locks, files that nobody will need again.

    home/tmp        empty             home/run      empty, no socket of it is open
    home/lock       held by nobody    home/jobs     folders of known jobs only
    checkpoints     whole, at most as many as are retained        savepoints     whole
    files of state  named by one of those
    output          no hidden file

Needs   the cluster to have been started with its temporary folder below its home: by that variable
        a process is found whose parent is gone.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil

from engine.checkpoint.format.manifest import METADATA
from engine.checkpoint.restoring.restore import load_manifest
from engine.cluster.home import ADDRESS_FILE

TEMPORARY = "tmp"
RETAINED = 3


def left_over(home: Path, output: Path, jobs: Collection[str]) -> list[str]:
    """One sentence for each thing that should be gone; `jobs`: those that were accepted."""
    return [
        *_processes(home),
        *_open_sockets(home),
        *_lock(home / "lock"),
        *_files(home, output),
        *_snapshots(home, jobs),
        *(
            f"folder {folder} is of no job"
            for folder in _children(home / "jobs")
            if folder.name not in jobs
        ),
    ]


def _processes(home: Path) -> Iterator[str]:
    for process in psutil.process_iter():
        try:
            command, variables = process.cmdline(), process.environ()
            gone = process.status() == psutil.STATUS_ZOMBIE
        except psutil.Error:
            continue  # it has just ended, or is another user's
        signs = [*command, variables.get("TMPDIR", "")]
        if any(str(home) in sign for sign in signs) and process.pid != os.getpid() and not gone:
            yield f"process {process.pid} runs: {' '.join(command)}"


def _open_sockets(home: Path) -> Iterator[str]:
    listed = Path("/proc/net/unix")
    if listed.exists():
        for line in listed.read_text().splitlines():
            if f" {home}/" in line:
                yield f"socket {line.split()[-1]} is open"


def _lock(path: Path) -> Iterator[str]:
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield f"lock {path} is held"


def _files(home: Path, output: Path) -> Iterator[str]:
    for folder in (home / TEMPORARY, home / "run", home / "passing"):
        yield from (f"{path} is there" for path in _children(folder))
    yield from (f"{path} is there" for path in home.glob(f"*{ADDRESS_FILE}*"))
    yield from (f"{path} is there" for path in home.glob("*-wal"))
    yield from (f"{path} is hidden" for path in output.rglob(".*") if path.is_file())


def _snapshots(home: Path, jobs: Collection[str]) -> Iterator[str]:
    for folder in _children(home / "checkpoints"):
        kept = [path for path in _children(folder) if path.name.startswith("chk-")]
        if folder.name not in jobs:
            yield f"checkpoints {folder} are of no job"
        if len(kept) > RETAINED:
            yield f"{len(kept)} checkpoints are kept in {folder}, not {RETAINED}"
    for path in [*home.glob("checkpoints/*/chk-*"), *_children(home / "savepoints")]:
        if not (path / METADATA).exists():
            yield f"snapshot {path} is not whole"
        yield from (f"{file} is hidden" for file in path.rglob(".*"))
    yield from _unneeded_files(home)


def _unneeded_files(home: Path) -> Iterator[str]:
    """Files of state that no snapshot names which is still there."""
    folders = [*home.glob("checkpoints/*/chk-*"), *_children(home / "savepoints")]
    whole = [folder for folder in folders if (folder / METADATA).exists()]
    named = {
        (folder / file.path).resolve()
        for folder in whole
        for file in load_manifest(str(folder)).files
    }
    for place in ("checkpoints", "savepoints"):
        for path in sorted((home / place).rglob("*")):
            if path.is_file() and path.name != METADATA and path.resolve() not in named:
                yield f"{path} is of no snapshot"


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []
