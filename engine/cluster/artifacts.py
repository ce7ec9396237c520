"""Uploaded job files, and the graphs made from them.

    HOME/artifacts/<hash>/<file name>     the file, by its content: again is the same
    HOME/jobs/<job id>/                   graph.pkl and plan.json of a job

Errors   a job file that cannot be built is refused with the one sentence that the build step left,
         or, if it left none, with its last line of output.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine import errors
from engine.cluster.build import ERROR, GRAPH, PLAN
from engine.cluster.store import Store
from engine.errors import ArtifactError, StorageError, UserError
from engine.graph.plan import Plan
from engine.rest.errors import artifact_not_found
from engine.rest.model.cluster import Artifact
from engine.rest.model.requests import Program
from engine.stream.recording import PARALLELISM

BUILD_TIMEOUT_S = 60.0
"""A graph takes a second; reading a catalogue over a slow network may take more."""

HASH_DIGITS = 32

LAST_BYTES = 64 << 10
"""Of a build step's output: its last line is what people are told."""


@dataclass(frozen=True, slots=True)
class Built:
    """What the build step made of a program."""

    folder: Path
    code: Path
    plan: Plan


class Artifacts:
    """Keeps job files and builds graphs."""

    def __init__(self, home: Path, store: Store) -> None:
        self._home = home
        self._store = store

    async def upload(self, filename: str, content: Path, now_ms: int) -> Artifact:
        """Copy a file in; its name is one safe path segment."""
        digest, size = await asyncio.to_thread(_keep, self._home / "artifacts", filename, content)
        artifact = Artifact(f"{digest}_{filename}", filename, now_ms, size)
        self._store.add_artifact(artifact)
        return artifact

    def delete(self, artifact_id: str) -> None:
        """Forget a file. Its copy stays: jobs that run from it restart from it."""
        self._find(artifact_id)
        self._store.forget_artifact(artifact_id)

    async def plan(self, program: Program) -> Plan:
        """Build a program only to see its plan. Raises ArtifactError and other user errors."""
        with tempfile.TemporaryDirectory(prefix="plan-") as folder:
            return (await self.build(program, Path(folder))).plan

    async def build(self, program: Program, folder: Path) -> Built:
        """Build a program's graph into a folder. Raises ArtifactError and other user errors."""
        artifact = self._find(program.artifact_id)
        request = {"arguments": list(program.arguments), "settings": settings_of(program)}
        folder.mkdir(parents=True, exist_ok=True)
        last = await _run(artifact, folder, request)
        if (folder / ERROR).exists():
            raise _error(json.loads((folder / ERROR).read_text()))
        if not (folder / PLAN).exists() or not (folder / GRAPH).exists():
            msg = f"job file {artifact.name} could not be built: {last}; run it by hand to see more"
            raise ArtifactError(msg)
        plan = Plan.from_json((folder / PLAN).read_text())
        return Built(folder, artifact.parent, plan)

    def _find(self, artifact_id: str) -> Path:
        artifact = self._store.artifact(artifact_id)
        if artifact is None:
            raise artifact_not_found(artifact_id)
        return self._home / "artifacts" / artifact_id[:HASH_DIGITS] / artifact.filename


def _keep(folder: Path, filename: str, content: Path) -> tuple[str, int]:
    """Copy a file to where its content belongs; return the hash and the size.

    Raises StorageError.
    """
    data = content.read_bytes()
    digest = hashlib.sha256(data).hexdigest()[:HASH_DIGITS]
    target = folder / digest / filename
    partial = target.with_name(f".{filename}.{secrets.token_hex(4)}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(target)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        msg = f"job file {filename} cannot be kept: {error.strerror}; make room in {folder}"
        raise StorageError(msg) from error
    return digest, len(data)


def settings_of(program: Program) -> Mapping[str, str]:
    """The program's settings, with the parallelism that it was asked to run at."""
    if program.parallelism is None:
        return dict(program.settings)
    return {**program.settings, PARALLELISM: str(program.parallelism)}


async def _run(artifact: Path, folder: Path, request: Mapping[str, object]) -> str:
    """Run the build step; return how it ended. Raises ArtifactError after too long a time."""
    output = _LastWords()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "engine.cluster.build", str(artifact), str(folder),
            json.dumps(request),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output.end,
            stderr=output.end,
            start_new_session=True,
        )  # fmt: skip
        try:
            async with asyncio.timeout(BUILD_TIMEOUT_S):
                code = await process.wait()
        except TimeoutError as error:
            msg = (
                f"job file {artifact.name} did not finish in {BUILD_TIMEOUT_S:g} s: it must only "
                "describe the job; move endless work into sources"
            )
            raise ArtifactError(msg) from error
        finally:
            # With whatever it started, also when the request itself was cancelled.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        return f"signal {-code} ended it" if code < 0 else output.line
    finally:
        output.close()


class _LastWords:
    """The end of what a process prints, however much that is and whoever keeps the pipe open."""

    def __init__(self) -> None:
        self._kept = b""
        self._pipe, self.end = os.pipe()
        os.set_blocking(self._pipe, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._pipe, self._read)

    @property
    def line(self) -> str:
        """The last line so far."""
        while self._read():
            pass
        text = self._kept.decode(errors="replace").strip()
        return text.rpartition("\n")[2] or "it ended without a word"

    def _read(self) -> bool:
        """Take what is there; False when there is nothing."""
        try:
            chunk = os.read(self._pipe, LAST_BYTES)
        except BlockingIOError:
            return False
        self._kept = (self._kept + chunk)[-LAST_BYTES:]
        return bool(chunk)

    def close(self) -> None:
        """Listen no longer."""
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
        os.close(self.end)


def _error(body: Mapping[str, str]) -> UserError:
    """The error of the build step, in the type it had there."""
    kind = getattr(errors, body["name"], ArtifactError)
    known = isinstance(kind, type) and issubclass(kind, UserError)
    return kind(body["message"]) if known else ArtifactError(body["message"])


def graph_file(folder: str) -> Path:
    """The pickled graph in a job's folder."""
    return Path(folder) / GRAPH


def load_plan(folder: str) -> Plan:
    """The plan in a job's folder. Raises ConfigError."""
    return Plan.from_json((Path(folder) / PLAN).read_text())
