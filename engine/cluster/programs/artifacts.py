"""Uploaded programs, and the graphs made from them.

    HOME/artifacts/<hash>/<file name>     a job file, by its content: again is the same
    HOME/artifacts/<hash>.zip/code/…      what was in a zip; of a wheel <hash>.whl/…
    HOME/artifacts/…/about.json           the packages it needs, see `environments.py`
    HOME/jobs/<job id>/                   graph.pkl and plan.json of a job, see `build.py`

Errors   a program that cannot be taken in or built is refused with the one sentence that the step
         left, or, if it left none, with its last line of output.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from engine.checkpoint.restoring.inputs import Inputs, Positions, SourceInput
from engine.cluster.programs import build, steps
from engine.cluster.programs.build import GRAPH, PLAN
from engine.cluster.programs.environments import Environments
from engine.cluster.store.store import Store
from engine.errors import ArtifactError, ConfigError, StorageError, UserError, error_from_json
from engine.graph.plan import Plan
from engine.programs import intake
from engine.rest.errors import artifact_not_found
from engine.rest.model.cluster import Artifact
from engine.rest.model.requests import Program
from engine.stream.recording import PARALLELISM

INTAKE_TIMEOUT_S = 60.0

BUILD_TIMEOUT_S = 40.0
"""A graph takes a second; reading a catalogue over a slow network may take more."""

HASH_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Built:
    """What the build step made of a program."""

    folder: Path
    code: Path
    plan: Plan
    python: str = ""
    """The interpreter that its workers need; empty: the engine's."""
    inputs: Inputs = field(default_factory=dict)
    """What the sources said of the positions that they shall go on from; empty: not asked."""


class Artifacts:
    """Keeps programs and builds graphs."""

    def __init__(self, home: Path, store: Store) -> None:
        self.environments = Environments(home / "environments")
        self._folder = home / "artifacts"
        self._store = store
        self._busy: list[Path] = []
        """Folders of programs that are being taken in or built: not recorded yet, but needed."""

    async def upload(self, filename: str, content: Path, now_ms: int) -> Artifact:
        """Take a program in; its name is one safe path segment. Raises ArtifactError."""
        digest = await asyncio.to_thread(_digest, content)
        folder = _place(self._folder, digest, filename)
        self._busy.append(folder)
        try:
            if not (folder / _proof(filename)).exists():
                await self._take_in(content, filename, folder)
            artifact = Artifact(f"{digest}_{filename}", filename, now_ms, content.stat().st_size)
            self._store.add_artifact(artifact)
        finally:
            self._busy.remove(folder)
        return artifact

    async def _take_in(self, content: Path, filename: str, folder: Path) -> None:
        """Run the step, and move what it made to where it belongs. Raises as `upload`."""
        partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.partial")
        command = [sys.executable, "-m", "engine.programs.intake"]
        try:
            partial.mkdir(parents=True)
            ended = await steps.run_step(
                [*command, str(content), filename, str(partial)], timeout_s=INTAKE_TIMEOUT_S
            )
            _raise_left(partial)
            if ended.code != 0:
                msg = f"{filename} could not be read: {ended.last_line}; build it again"
                raise ArtifactError(msg)
            await asyncio.to_thread(_settle, partial, folder, filename)
        except steps.TimeUp as error:
            msg = f"{filename} could not be read in {INTAKE_TIMEOUT_S:g} s; make it smaller"
            raise ArtifactError(msg) from error
        except OSError as error:
            msg = f"{filename} cannot be kept: {error.strerror}; make room in {self._folder}"
            raise StorageError(msg) from error
        finally:
            await asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True)

    def delete(self, artifact_id: str) -> None:
        """Forget a program. Its code stays as long as a job needs it, see `retention.py`."""
        self._find(artifact_id)
        self._store.forget_artifact(artifact_id)

    def replaced(self, codes: Collection[str], kept: int) -> Sequence[str]:
        """Artifacts that no job runs from, beyond the `kept` newest ones.

        `codes`: where the code of jobs lies.
        """
        used = self._used(codes)
        idle = [
            one.id
            for one in self._store.artifacts()
            if _place(self._folder, one.id[:HASH_DIGITS], one.filename) not in used
        ]
        return idle[kept:]

    def unused(self, codes: Collection[str]) -> list[Path]:
        """Folders that belong to no artifact; `codes`: where the code of jobs lies."""
        listed = {_place(self._folder, one.id[:HASH_DIGITS], one.filename)
                  for one in self._store.artifacts()}  # fmt: skip
        kept = listed | self._used(codes)
        folders = (path for path in self._folder.glob("*") if not path.name.startswith("."))
        return sorted(path for path in folders if path not in kept)

    def _used(self, codes: Collection[str]) -> set[Path]:
        paths = map(Path, codes)
        folders = (path.parent if path.name == intake.CODE else path for path in paths)
        return {*folders, *self._busy}

    async def plan(self, program: Program) -> Plan:
        """Build a program only to see its plan. Raises ArtifactError and other user errors."""
        return (await self.look(program, {})).plan

    async def look(self, program: Program, positions: Positions) -> Built:
        """Build a program and keep nothing. Raises ArtifactError and other user errors."""
        with tempfile.TemporaryDirectory(prefix="plan-") as folder:
            return await self.build(program, Path(folder), positions)

    async def build(
        self, program: Program, folder: Path, positions: Positions | None = None
    ) -> Built:
        """Build a program's graph into a folder. Raises ArtifactError and other user errors.

        `positions`: of the snapshot that it will start from; its sources are asked about them.
        """
        artifact = self._find(program.artifact_id)
        place = _place(self._folder, artifact.id[:HASH_DIGITS], artifact.filename)
        self._busy.append(place)
        try:
            python = await self.environments.python_for(_requirements(place))
            code = place / _proof(artifact.filename)
            if positions:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / build.POSITIONS).write_text(json.dumps(positions))
            plan = await _build(code, artifact.filename, program, folder, python)
        finally:
            self._busy.remove(place)
        return Built(folder, code if code.is_dir() else place, plan, python, _inputs(folder))

    def _find(self, artifact_id: str) -> Artifact:
        artifact = self._store.artifact(artifact_id)
        if artifact is None:
            raise artifact_not_found(artifact_id)
        return artifact


def _digest(content: Path) -> str:
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:HASH_DIGITS]


def _place(folder: Path, digest: str, filename: str) -> Path:
    """Where a program lies. The same bytes may be both an archive and a job file."""
    suffix = Path(filename).suffix
    return folder / (digest + (suffix if suffix in intake.ARCHIVE_SUFFIXES else ""))


def _proof(filename: str) -> str:
    """What is in the place of a program that was taken in."""
    return intake.CODE if filename.endswith(intake.ARCHIVE_SUFFIXES) else filename


def _settle(partial: Path, folder: Path, filename: str) -> None:
    """Move what was taken in to its place, where the same content may lie already."""
    with suppress(OSError):
        partial.rename(folder)
        return
    (partial / intake.ABOUT).replace(folder / intake.ABOUT)
    if not (folder / _proof(filename)).exists():
        (partial / _proof(filename)).replace(folder / _proof(filename))


def _requirements(place: Path) -> Sequence[str]:
    """What a program needs; one that an older engine has taken in needs nothing."""
    about = place / intake.ABOUT
    return list(json.loads(about.read_text())["requirements"]) if about.exists() else []


def settings_of(program: Program) -> Mapping[str, str]:
    """The program's settings, with the parallelism that it was asked to run at."""
    if program.parallelism is None:
        return dict(program.settings)
    return {**program.settings, PARALLELISM: str(program.parallelism)}


async def _build(code: Path, name: str, program: Program, folder: Path, python: str) -> Plan:
    """Run the build step. Raises ArtifactError and other user errors."""
    request = {
        "entry": program.entry,
        "arguments": list(program.arguments),
        "settings": settings_of(program),
    }
    command = [python or sys.executable, "-m", "engine.cluster.programs.build"]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        ended = await steps.run_step(
            [*command, str(code), name, str(folder), json.dumps(request)],
            timeout_s=BUILD_TIMEOUT_S,
            memory_bytes=build.RESIDENT_BYTES,
        )
    except steps.TimeUp as error:
        msg = (
            f"job file {name} did not finish in {BUILD_TIMEOUT_S:g} s: it must only describe the "
            "job; move endless work into sources"
        )
        raise ArtifactError(msg) from error
    except steps.MemoryUp as error:
        raise build.needs_memory(name, build.RESIDENT_BYTES) from error
    _raise_left(folder)
    if not (folder / PLAN).exists() or not (folder / GRAPH).exists():
        msg = f"job file {name} could not be built: {ended.last_line}; run it by hand to see more"
        raise ArtifactError(msg)
    return load_plan(str(folder))


def _inputs(folder: Path) -> Inputs:
    found = json.loads((folder / build.INPUTS).read_text())
    return {uid: SourceInput.from_json(one) for uid, one in found.items()}


def _raise_left(folder: Path) -> None:
    """Raise the error that a step left, in the type it had there."""
    if not (folder / intake.ERROR).exists():
        return
    body = json.loads((folder / intake.ERROR).read_text())
    raise error_from_json(body, UserError, StorageError, otherwise=ArtifactError)


def graph_file(folder: str) -> Path:
    """The pickled graph in a job's folder."""
    return Path(folder) / GRAPH


def load_plan(folder: str) -> Plan:
    """The plan in a job's folder. Raises ConfigError."""
    path = Path(folder) / PLAN
    try:
        text = path.read_text()
    except (OSError, ValueError) as error:
        msg = f"plan {path} cannot be read: {error}; submit the job file again"
        raise ConfigError(msg) from error
    return Plan.from_json(text)
