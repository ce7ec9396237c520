"""Where everything of one installation lives, and what its programs are told about it.

<home>/up.lock             held while the platform runs; the process id of the supervisor
<home>/controlplane.sqlite3, series.db, secret_key, artifacts/, savepoints/, static/
<home>/engine/             the job manager's own folder
<home>/redis/              the Redis server's file
<home>/logs/<program>.log
<home>/points_token        with which jobs write points; readable by its owner only
<runtime>/                 sockets: in the home, or, where that path is too long for a socket,
in a folder of its own below /tmp
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]

MAX_RUNTIME_PATH = 48
"""A socket's path must stay below 104 bytes on macOS; the rest is for names of sockets."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of one installation."""

    home: Path
    runtime: Path

    @property
    def redis_socket(self) -> Path:
        """Socket of the Redis server."""
        return self.runtime / "redis.sock"

    @property
    def redis_url(self) -> str:
        """Its address."""
        return f"unix://{self.redis_socket}"

    def log(self, program: str) -> Path:
        """Log of one program."""
        return self.home / "logs" / f"{program}.log"


def make_layout(home: Path) -> Layout:
    """Make the folders; only the owner may look into them."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    layout = Layout(home, _runtime(home))
    for folder in ("logs", "redis", "engine", "savepoints", "artifacts", "run", "static"):
        (home / folder).mkdir(mode=0o700, exist_ok=True)
    return layout


def environment(
    layout: Layout, *, web_url: str, engine_url: str, control_port: int
) -> dict[str, str]:
    """What every program is told."""
    token = _points_token(layout.home)
    paths = [str(CHECKOUT / "platform"), str(CHECKOUT)]
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "HEADWATER_HOME": str(layout.home),
        "HEADWATER_REDIS_URL": layout.redis_url,
        "HEADWATER_ENGINE_URL": engine_url,
        "HEADWATER_CONTROL_PORT": str(control_port),
        "HEADWATER_CONTROL": f"127.0.0.1:{control_port}",
        "HEADWATER_POINTS_URL": web_url,
        "HEADWATER_METRICS_URL": os.environ.get("HEADWATER_METRICS_URL") or web_url,
        "HEADWATER_POINTS_TOKEN_SHA256": hashlib.sha256(token.encode()).hexdigest(),
        "PYTHONPATH": os.pathsep.join([*paths, *_words(os.environ.get("PYTHONPATH", ""))]),
        "PYTHONUNBUFFERED": "1",
    }


def engine_environment(layout: Layout) -> dict[str, str]:
    """What only the engine is told: with which token its jobs, and its reporter, write points."""
    token = _points_token(layout.home)
    elsewhere = os.environ.get("HEADWATER_METRICS_URL")
    return {
        "HEADWATER_POINTS_TOKEN": token,
        "HEADWATER_METRICS_TOKEN": os.environ.get("HEADWATER_METRICS_TOKEN", "")
        if elsewhere
        else token,
    }


def _points_token(home: Path) -> str:
    path = home / "points_token"
    if not path.exists():
        # The supervisor holds the home's lock: nobody else writes here.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32))
    return path.read_text().strip()


def _runtime(home: Path) -> Path:
    if len(os.fsencode(home / "run")) <= MAX_RUNTIME_PATH:
        folder = home / "run"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder
    # macOS has its temporary folder deep below /var: /tmp is short everywhere.
    base = Path("/tmp") if os.access("/tmp", os.W_OK) else Path(tempfile.gettempdir())  # noqa: S108
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    folder = base / f"headwater-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if _is_ours(folder):
        return folder
    return Path(tempfile.mkdtemp(prefix="headwater-", dir=base))


def _is_ours(folder: Path) -> bool:
    """Whether nobody else made the folder or can write to it: /tmp is open to all."""
    found = folder.lstat()
    private = stat.S_IMODE(found.st_mode) & 0o077 == 0
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and private


def _words(text: str) -> list[str]:
    return [part for part in text.split(os.pathsep) if part]
