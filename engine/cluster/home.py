"""The home of a job manager: one process has it, and publishes there where it listens.

HOME/lock            who holds it has the home
HOME/jobmanager.json its address and process id, while it runs
HOME/passing         temporary files of it and its steps, while it runs
RUNTIME/*.sock       sockets, in a folder with a short path: HOME/run, or one in TMPDIR
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from engine.errors import ConfigError

FOLDERS = ("artifacts", "environments", "jobs", "checkpoints", "savepoints", "logs")
ADDRESS_FILE = "jobmanager.json"
LONGEST_RUNTIME_PATH = 80
"""Room for "/0123abcd-127.sock" within the 104 bytes that macOS allows."""


@contextmanager
def locked(home: Path) -> Iterator[IO[str]]:
    """Keep a home to one job manager. Raises ConfigError when another one has it."""
    with (home / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            msg = f"home folder {home} is in use by another job manager; pass another --home"
            raise ConfigError(msg) from error
        yield lock


@contextmanager
def temporary_files(folder: Path) -> Iterator[None]:
    """Put temporary files of this process where the next one finds, and removes, what is left."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def runtime_folder(home: Path, wanted: Path | None) -> Iterator[Path]:
    """A folder for sockets that only this user can enter, with a path short enough for them.

    One outside of the home, which nobody chose, goes when it is needed no more.
    """
    folder = wanted or home / "run"
    if len(str(folder.absolute())) > LONGEST_RUNTIME_PATH:
        if wanted is not None:
            msg = (
                f"runtime folder has too long a path for sockets: got {folder.absolute()}; "
                f"choose one of at most {LONGEST_RUNTIME_PATH} characters"
            )
            raise ConfigError(msg)
        digest = hashlib.sha256(str(home.absolute()).encode()).hexdigest()[:8]
        folder = Path(tempfile.gettempdir()) / f"headwater-{os.getuid()}-{digest}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    try:
        yield folder.absolute()
    finally:
        if wanted is None and folder.parent != home:
            with suppress(OSError):  # the job manager has emptied it
                folder.rmdir()


def publish(home: Path, listener: socket.socket) -> None:
    """Say where it listens, to people and to programs that started it with port 0."""
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    partial = home / f".{ADDRESS_FILE}.partial"
    partial.write_text(json.dumps({"url": url, "pid": os.getpid()}))
    partial.replace(home / ADDRESS_FILE)
    print(f"job manager listens at {url}", flush=True)
