"""Which shared files may be deleted: never one that is needed, and in the end all others."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.checkpoint.format.files import StateFile
from engine.checkpoint.format.shared import SharedFiles, is_written_by, shared_names
from engine.keygroups import KeyGroupRange

RETAINED = 2


@dataclass
class Job:
    """A job that takes checkpoints, and the storage they lie in."""

    random: Random
    storage: set[str] = field(default_factory=set)
    retained: dict[int, frozenset[str]] = field(default_factory=dict)
    pending: dict[int, frozenset[str]] = field(default_factory=dict)
    base: int = 0
    next_id: int = 1
    shared: SharedFiles = field(default_factory=SharedFiles)

    def begin(self) -> None:
        """Each builds on some files of its base, and writes some of its own."""
        own = {f"chk-{self.next_id}/{n}" for n in range(self.random.randint(0, 2))}
        older = {file for file in self.retained.get(self.base, ()) if self.random.random() < 0.8}
        self.shared.begin(self.next_id, self.base)
        self.pending[self.next_id] = frozenset(own | older)
        self.storage |= own
        self.next_id += 1

    def complete(self) -> None:
        if self.pending:
            id_ = self.random.choice(list(self.pending))
            files = self.pending.pop(id_)
            self.retained[id_] = files
            self.shared.complete(id_, files)
            self.base = max(self.base, id_)
            for old in sorted(self.retained)[:-RETAINED]:
                del self.retained[old]
                self.shared.retire(old)
            self.delete()

    def abort(self) -> None:
        if self.pending:
            id_ = self.random.choice(list(self.pending))
            del self.pending[id_]
            self.shared.abort(id_)
            self.storage -= {file for file in self.storage if file.startswith(f"chk-{id_}/")}
            self.delete()

    def restart(self) -> None:
        """The job manager is killed: its successor knows what is retained, and sweeps."""
        self.pending.clear()
        self.base = 0
        self.shared = SharedFiles()
        for id_, files in self.retained.items():
            self.shared.complete(id_, files)
        self.storage &= self.shared.needed

    def delete(self) -> None:
        """Now and then storage does not answer, and it is tried again later."""
        if self.random.random() < 0.8:
            self.storage -= self.shared.unneeded
            self.shared.unneeded.clear()

    def check(self) -> None:
        for id_, files in self.retained.items():
            assert files <= self.storage, f"checkpoint {id_} has lost files"
        for id_, files in self.pending.items():
            assert files <= self.storage, f"checkpoint {id_}, under way, has lost files"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["begin", "begin", "complete", "abort", "restart"])), st.randoms())
def test_every_retained_checkpoint_can_be_read_and_nothing_else_stays(steps, random):
    job = Job(random)
    for step in steps:
        getattr(job, step)()
        job.check()
    while job.pending:
        job.abort()
    job.storage -= job.shared.unneeded
    assert job.storage == set().union(*job.retained.values())


def file(path: str) -> StateFile:
    return StateFile(path, 1, 1, "", KeyGroupRange(0, 1))


@pytest.mark.parametrize(
    ("path", "new"),
    [
        ("uid/n-0.parquet", True),
        ("../shared/chk-7/uid/n-0.parquet", True),
        ("../shared/chk-71/uid/n-0.parquet", False),
    ],
)
def test_a_checkpoint_has_written_what_lies_in_its_folders(path: str, new: bool) -> None:
    assert is_written_by(7, file(path)) is new


def test_shared_files_are_known_by_their_names_in_the_shared_folder() -> None:
    found = shared_names([file("uid/n-0.parquet"), file("../shared/chk-3/uid/n-0.parquet")])
    assert found == {"chk-3/uid/n-0.parquet"}
