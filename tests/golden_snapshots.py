"""Snapshots that every later engine has to read: one folder per format of the manifest.

    make golden ─▶ tests/fixtures/snapshots/format-<version>/
                     savepoint/              from the middle of every_kind_job
                     checkpoints/chk-<id>/   the checkpoint after it, and what it shares with others
                     rows.json               how much output is written with each of them

A folder is written once, by the first engine of its format, and never again.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random

from engine.checkpoint.compatibility import check_restore
from engine.checkpoint.effects import SnapshotRequest
from engine.checkpoint.folder import Folder
from engine.checkpoint.manifest import FORMAT_VERSION, METADATA, Manifest, parse_manifest
from engine.checkpoint.restore import SubtaskRestore, assign, load_manifest
from engine.checkpoint.stats import CheckpointLog
from engine.checkpoint.storage import open_folder
from engine.elements import AfterBarrier, Micros, SnapshotKind
from engine.graph.jobgraph import TaskId
from engine.graph.plan import plan_of
from engine.state.changes import LayerPolicy
from engine.state.contract import StateKind
from engine.testing.attempt import Attempt, Completed
from engine.testing.memory import MemoryStorage, OutputTables
from fixtures.every_kind_job import TABLES, every_kind_job

FOLDER = Path(__file__).parent / "fixtures" / "snapshots"

MIDDLE_US = 1_200_000
"""Of 2 s in which the job reads its input."""

EAGER = LayerPolicy(min_rows=1, max_share=100.0)
"""States are large from the first row on, so that checkpoints are layers on earlier ones."""

SEED = 12
STEPS = 100_000


def formats() -> list[Path]:
    """The folder of each format, oldest first."""
    return sorted(FOLDER.glob("format-*"), key=lambda folder: int(folder.name.split("-")[1]))


def snapshots(folder: Path) -> list[Path]:
    """The snapshots of a format: a savepoint and a checkpoint."""
    return [folder / "savepoint", *sorted(folder.glob("checkpoints/chk-*"))]


class Run:
    """One attempt of the job, driven in one thread."""

    def __init__(self, parallelism: int = 1, snapshot: Path | None = None) -> None:
        """`snapshot`: where it goes on from."""
        self.output = OutputTables()
        self.storage = _Storage()
        self.completed: list[Completed] = []
        graph = every_kind_job(parallelism, self.output)
        graph = replace(graph, state=replace(graph.state, layers=EAGER))
        restore: Mapping[TaskId, SubtaskRestore] = {}
        if snapshot is not None:
            manifest = load_manifest(str(snapshot))
            check_restore(manifest, plan_of(graph)).raise_if_refused()
            restore = assign(manifest, str(snapshot), plan_of(graph))
            # What it has staged was written by another process, and counts as written.
            self.output.committed = {name: [] for name in committables(manifest)}
        self.attempt = Attempt(
            graph,
            "first" if snapshot is None else "second",
            restore,
            self.storage,
            CheckpointLog(),
            first_id=100 if snapshot else 1,
            now=Micros(MIDDLE_US if snapshot else 0),
            on_completed=self.completed.append,
        )
        self._random = Random(SEED)

    def until(self, reached: Callable[[], bool]) -> None:
        """Let the cluster work until something is so."""
        for _ in range(STEPS):
            if reached():
                return
            steps = self.attempt.steps(self._random)
            if steps and self._random.random() > 0.05:
                self._random.choice(steps).do()
            else:
                self.attempt.tick(self._random.randrange(50_000))
        raise AssertionError("the job does not get there")

    def rows(self, url: str) -> dict[str, int]:
        """How many rows of each table are written once a snapshot is committed."""
        manifest = parse_manifest(self.storage.files[f"{url}/{METADATA}"], url)
        staged = ((name, self.output.staged.get(name, [])) for name in committables(manifest))
        frames = chain(self.output.committed.items(), staged)
        counts = Counter(dict.fromkeys(TABLES, 0))
        for committable, parts in frames:
            counts[committable.partition("/")[0]] += sum(part.height for part in parts)
        return dict(counts)


class _Storage(MemoryStorage):
    """Memory, and the folders on disk."""

    def open(self, url: str) -> Folder:
        return open_folder(url) if url.startswith("/") else super().open(url)


def committables(manifest: Manifest) -> list[str]:
    """What a snapshot has staged."""
    return [str(name) for entry in manifest.operators for name in entry.committables]


def main() -> int:
    """Write the folder of the present format."""
    target = FOLDER / f"format-{FORMAT_VERSION}"
    if target.exists():
        print(f"{target} is there: it must stay as it is", file=sys.stderr)
        return 1
    run = Run()
    run.until(lambda: run.attempt.now > MIDDLE_US and len(run.completed) > 1)
    run.attempt.request(
        SnapshotRequest("0" * 32, SnapshotKind.SAVEPOINT, AfterBarrier.CONTINUE, "savepoints")
    )
    run.until(lambda: any(_savepoints(run.storage)))
    (savepoint,) = _savepoints(run.storage)
    rows = {"savepoint": run.rows(savepoint)}
    before = len(run.completed)
    run.until(lambda: len(run.completed) > before)
    checkpoint = run.completed[-1].folder
    rows[checkpoint.rpartition("/")[2]] = run.rows(checkpoint)
    _copy(run.storage, savepoint, checkpoint, target)
    (target / "rows.json").write_text(json.dumps(rows, indent=1) + "\n")
    for folder in snapshots(target):
        assert kinds(folder) == set(StateKind), f"{folder} lacks {set(StateKind) - kinds(folder)}"
    return 0


def _savepoints(storage: MemoryStorage) -> list[str]:
    folders = (url.rpartition("/")[0] for url in storage.files if url.endswith(f"/{METADATA}"))
    return [folder for folder in folders if folder.startswith("savepoints/")]


def _copy(storage: MemoryStorage, savepoint: str, checkpoint: str, target: Path) -> None:
    beside = checkpoint.rpartition("/")[0]
    for url, content in storage.files.items():
        if url.startswith(f"{savepoint}/"):
            path = target / "savepoint" / url.removeprefix(f"{savepoint}/")
        elif url.startswith((f"{checkpoint}/", f"{beside}/shared/")):
            path = target / "checkpoints" / url.removeprefix(f"{beside}/")
        else:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def kinds(folder: Path) -> set[StateKind]:
    """Kinds of state of which a snapshot has rows."""
    manifest = parse_manifest((folder / METADATA).read_bytes(), str(folder))
    return {state.kind for entry in manifest.operators for state in entry.states if state.rows}


if __name__ == "__main__":
    sys.exit(main())
