"""The peers: what each is asked to do, and the virtual environment that it runs in.

    .bench-venvs/bytewax/     made on first use from requirements/bytewax.txt, and when it changes

Guarantee  Headwater imports none of them; all have permissive licences.
Errors     PeerError, one sentence, when a peer cannot run here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
VENVS = ROOT / ".bench-venvs"
INSTALL_TIMEOUT_S = 300


class PeerError(Exception):
    """A peer cannot run here, or did not end well."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Something that does the same work."""

    name: str
    rows: int
    """As many as take it about a second."""
    works: tuple[str, ...]
    java: int | None = None
    """The major version that it needs at least."""

    @property
    def requirements(self) -> Path:
        return HERE / "requirements" / f"{self.name}.txt"

    @property
    def module(self) -> str:
        return f"benchmarks.peers.scripts.on_{self.name}"

    @property
    def version(self) -> str:
        """As it is pinned."""
        return pinned(self.name, self.requirements.read_text())


PEERS = (
    Peer("bytewax", 200_000, ("tumbling", "many-keys", "sliding", "session", "running", "json")),
    Peer("csp", 1_000_000, ("tumbling", "many-keys", "running")),
    Peer("streamz", 300_000, ("tumbling", "many-keys", "running", "json")),
    Peer("quixstreams", 20_000, ("tumbling", "many-keys", "sliding", "session", "running")),
    Peer("pyspark", 250_000, ("tumbling", "many-keys"), java=17),
)
LEFT_OUT = (
    "pathway is left out: its licence (BSL 1.1) is not permissive",
    "Flink SQL is left out: PyFlink brings Apache Beam and a whole Flink distribution with it",
)


def pinned(name: str, requirements: str) -> str:
    """The version of a package in a requirements text."""
    found = re.search(rf"^{re.escape(name)}==(\S+)", requirements, re.MULTILINE)
    if found is None:
        msg = f"{name} is not pinned in its requirements; write {name}==<version>"
        raise PeerError(msg)
    return found[1]


def python_of(peer: Peer) -> Path:
    """The interpreter of the peer's environment, which is made when it is missing or old."""
    if peer.java is not None:
        _need_java(peer)
    folder = VENVS / peer.name
    python, stamp = folder / "bin" / "python", folder / "requirements.txt"
    wanted = peer.requirements.read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(exist_ok=True)
        _do(
            peer,
            sys.executable,
            "-m",
            "uv",
            "venv",
            "--quiet",
            "--python",
            sys.executable,
            str(folder),
        )
        install = ("pip", "install", "--quiet", "--no-deps")
        arguments = ("--python", str(python), "-r", str(peer.requirements))
        _do(peer, sys.executable, "-m", "uv", *install, *arguments)
        stamp.write_text(wanted)
    return python


def _do(peer: Peer, *command: str) -> None:
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S
        )
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or ["no reason given"]
        msg = f"{peer.name} could not be installed: {said[-1].strip()}"
        raise PeerError(msg) from error
    except subprocess.TimeoutExpired as error:
        msg = f"{peer.name} could not be installed in {INSTALL_TIMEOUT_S} s"
        raise PeerError(msg) from error


def _need_java(peer: Peer) -> None:
    """Raises PeerError without Java, or with an old one."""
    java = shutil.which("java")
    said = ""
    if java is not None:
        command = [java, "-version"]
        said = subprocess.run(command, check=False, capture_output=True, text=True).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or peer.java is None or int(found[1]) < peer.java:
        what = "none" if found is None else f"Java {found[1]}"
        msg = f"{peer.name} needs Java {peer.java}: found {what}; install it and put it on PATH"
        raise PeerError(msg)
