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
from itertools import chain
from pathlib import Path
from random import Random

from engine.checkpoint.coordination.effects import SnapshotRequest
from engine.checkpoint.format.manifest import FORMAT_VERSION, METADATA, Manifest, parse_manifest
from engine.checkpoint.restoring.compatibility import check_restore
from engine.checkpoint.restoring.restore import SubtaskRestore, assign, load_manifest
from engine.checkpoint.storage.addresses import open_folder
from engine.checkpoint.storage.folder import Folder
from engine.elements import AfterBarrier, Micros, SnapshotKind
from engine.graph.jobgraph import TaskId
from engine.state.changes import LayerPolicy
from engine.state.contract import StateKind
from engine.testing.attempt import Attempt
from engine.testing.blueprint import drawn
from engine.testing.memory import MemoryStorage
from engine.testing.recorded import Recorded, Records
from engine.testing.weather import Weather
from engine.testing.world import World
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
        random = Random(SEED)
        self.world = World(random, Weather(random), layers=EAGER)
        self.storage = self.world.storage = _Storage()
        self.world.records = Records(self.storage, self.world.weather)
        self.output = self.world.output
        job = drawn(every_kind_job, parallelism)
        restore: Mapping[TaskId, SubtaskRestore] = {}
        if snapshot is not None:
            manifest = load_manifest(str(snapshot))
            check_restore(manifest, job.plan).raise_if_refused()
            restore = assign(manifest, str(snapshot), job.plan)
            # What it has staged was written by another process, and counts as written.
            self.output.committed = {name: [] for name in committables(manifest)}
            self.world.now = Micros(MIDDLE_US)
            self.world.records.next_id = 100
        name = "first" if snapshot is None else "second"
        self.attempt = Attempt(job, name, self.world, restore)

    @property
    def checkpoint(self) -> Recorded:
        """The latest."""
        return next(each for each in reversed(self.world.records.snapshots) if each.is_checkpoint)

    def until(self, reached: Callable[[], bool]) -> None:
        """Let the cluster work until something is so."""
        random = self.world.random
        for _ in range(STEPS):
            if reached():
                return
            steps = self.attempt.steps()
            if steps and random.random() > 0.05:
                random.choice(steps).do()
            else:
                self.attempt.tick(random.randrange(50_000))
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
    run.until(lambda: run.world.now > MIDDLE_US)
    run.attempt.request(
        SnapshotRequest("0" * 32, SnapshotKind.SAVEPOINT, AfterBarrier.CONTINUE, "savepoints")
    )
    run.until(lambda: any(_savepoints(run.storage)))
    (savepoint,) = _savepoints(run.storage)
    rows = {"savepoint": run.rows(savepoint)}
    before = run.checkpoint
    run.until(lambda: run.checkpoint is not before)
    checkpoint = run.checkpoint.folder
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
