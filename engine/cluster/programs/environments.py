"""Environments: the packages that a program needs beside the engine's, each set installed once.

    HOME/environments/<hash>/            a virtual environment that sees the engine's packages
    HOME/environments/<hash>/complete    when it is whole; touched when it is used

The hash is that of the requirements, of the interpreter, and of the packages that a job shares with
the engine. Those keep their versions: frames and graphs pass from one to the other.

Guarantee  an environment is made once, however many ask for it at once; one that was not finished
           is made anew; one that a job needs is not deleted.
Errors     ArtifactError with one sentence, which has pip's last word.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import site
import sys
import sysconfig
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from engine.cluster.programs.steps import Ended, MemoryUp, TimeUp, run_step
from engine.errors import ArtifactError
from engine.rest.errors import Unavailable

INSTALL_TIMEOUT_S = 300.0
INSTALL_MEMORY_BYTES = 4 << 30
PATIENCE_S = 45.0
"""Clients wait for 90 seconds, and a graph is built after that."""
KEPT = 16
"""How many that no job needs are kept for the next one that does."""

SHARED = ("polars", "pyarrow", "numpy", "numba", "cloudpickle", "rocksdict", "obstore")
"""Packages whose objects, or files, pass between a job's code and the engine's."""

COMPLETE = "complete"
_BRIDGE = "engine_packages.pth"
_OFFLINE = "connection broken by"
"""What pip says before it claims that a package does not exist."""


class Environments:
    """Makes environments, and remembers which are there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._making: dict[str, asyncio.Task[None]] = {}

    async def python_for(self, requirements: Sequence[str]) -> str:
        """The interpreter with these packages; empty when the engine's will do.

        Raises ArtifactError, and Unavailable while they are being installed for long.
        """
        if not requirements:
            return ""
        name = _hash(requirements)
        folder = self._folder / name
        if name not in self._making and not (folder / COMPLETE).exists():
            self._making[name] = asyncio.create_task(self._make(name, requirements))
        if name in self._making:
            await _patiently(self._making[name], requirements)
        (folder / COMPLETE).touch()
        return str(_python(folder))

    async def _make(self, name: str, requirements: Sequence[str]) -> None:
        folder = self._folder / name
        try:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            await _create(folder)
            await _install(folder, requirements)
            (folder / COMPLETE).write_text(json.dumps(list(requirements)))
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
        finally:
            del self._making[name]

    def replaced(self, needed: Collection[str], kept: int = KEPT) -> list[Path]:
        """Environments beyond the `kept` that were used last, and those that were never finished.

        `needed`: interpreters that are not to go.
        """
        idle = [
            path
            for path in self._folder.glob("*")
            if path.name not in self._making and str(_python(path)) not in needed
        ]
        whole = [path for path in idle if (path / COMPLETE).exists()]
        whole.sort(key=lambda path: (path / COMPLETE).stat().st_mtime, reverse=True)
        return [path for path in idle if path not in whole[:kept]]


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _hash(requirements: Sequence[str]) -> str:
    identity = [sorted(requirements), _constraints(), sys.version, sys.prefix, sys.base_prefix]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]


def _constraints() -> list[str]:
    found = []
    for name in SHARED:
        with suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name}=={importlib.metadata.version(name)}")
    return found


async def _patiently(making: asyncio.Task[None], requirements: Sequence[str]) -> None:
    """Wait for an environment; it is made on when whoever waits gives up. Raises Unavailable."""
    await asyncio.wait([making], timeout=PATIENCE_S)
    if not making.done():
        shown = ", ".join(requirements)
        msg = f"packages of the job are still being installed: {shown:.200}; ask again in a moment"
        raise Unavailable(msg)
    making.result()


async def _create(folder: Path) -> None:
    """Make a virtual environment that sees what this process sees."""
    # That of the engine, if it has one, is shared; to copy it takes seconds.
    without_pip = ("--without-pip",) if importlib.util.find_spec("pip") else ()
    command = [sys.executable, "-m", "venv", "--system-site-packages", *without_pip, str(folder)]
    ended = await _limited(command, "be made")
    if ended.code != 0:
        msg = f"environment for the job cannot be made: {ended.last_line}; install python3-venv"
        raise ArtifactError(msg)
    # The flag above means those of the interpreter that ours may itself be a venv of.
    lines = [f"import site; site.addsitedir({place!r})" for place in site.getsitepackages()]
    packages = sysconfig.get_path("purelib", vars={"base": str(folder)})
    (Path(packages) / _BRIDGE).write_text("\n".join(lines) + "\n")


async def _install(folder: Path, requirements: Sequence[str]) -> None:
    wanted, fixed = folder / "requirements.txt", folder / "constraints.txt"
    wanted.write_text("\n".join(requirements) + "\n")
    fixed.write_text("\n".join(_constraints()) + "\n")
    ended = await _limited(
        [
            str(_python(folder)), "-m", "pip", "install",
            "--no-input", "--disable-pip-version-check", "--progress-bar", "off",
            "--no-warn-script-location", "--retries", "2",
            "--requirement", str(wanted), "--constraint", str(fixed),
        ],
        "be installed",
        str(folder),
    )  # fmt: skip
    if ended.code != 0:
        raise _not_installed(requirements, ended)


async def _limited(command: Sequence[str], what: str, folder: str | None = None) -> Ended:
    environment = os.environ | {"PYTHONNOUSERSITE": "1"}
    try:
        return await run_step(
            command,
            timeout_s=INSTALL_TIMEOUT_S,
            memory_bytes=INSTALL_MEMORY_BYTES,
            environment=environment,
            folder=folder,
        )
    except TimeUp as error:
        msg = (
            f"packages of the job could not {what} in {INSTALL_TIMEOUT_S:g} s"
            "; install the largest beside the engine"
        )
        raise ArtifactError(msg) from error
    except MemoryUp as error:
        msg = (
            f"packages of the job could not {what} in {INSTALL_MEMORY_BYTES >> 30} GiB of memory"
            "; install the largest beside the engine"
        )
        raise ArtifactError(msg) from error


def _not_installed(requirements: Sequence[str], ended: Ended) -> ArtifactError:
    shown = ", ".join(requirements)
    msg = f"packages of the job cannot be installed: {shown:.200}: {_last_word(ended)}"
    if _OFFLINE in ended.output:
        return ArtifactError(
            f"{msg}; this machine does not reach the package index: install them beside the "
            "engine, or set PIP_INDEX_URL, or PIP_NO_INDEX and PIP_FIND_LINKS, where it runs"
        )
    return ArtifactError(f"{msg}; correct the requirements")


def _last_word(ended: Ended) -> str:
    """The last error of pip that says something; the very last one of a conflict is an address."""
    said = [line[7:] for line in ended.output.splitlines() if line.startswith("ERROR: ")]
    telling = [line for line in said if not line.startswith("ResolutionImpossible")]
    return (telling or [ended.last_line])[-1].strip().rstrip(".")
