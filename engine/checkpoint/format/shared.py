"""Files that several checkpoints of a job share: where they lie, and which may be deleted.

    <dir>/chk-7/_metadata                         names ../shared/chk-3/<uid>/<state>-0.parquet
    <dir>/shared/chk-3/<uid>/<state>-0.parquet    written by checkpoint 3, needed by 3 to 7

    begin(8, base 7) ──▶ complete(8, files) ──▶ retire(8) ──▶ unneeded ──deleted by the shell──▶
                   └───▶ abort(8)

Guarantee  no file is ever unneeded that a complete checkpoint needs, or that one under way may
           build on; every other file of a retired one is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from itertools import chain

from engine.checkpoint.format.files import StateFile
from engine.checkpoint.storage.folder import SHARED


def shared_folder(checkpoint_folder: str) -> str | None:
    """Where a checkpoint writes what others may need; None for the folder of a savepoint.

    >>> shared_folder("s3://bucket/job/chk-7"), shared_folder("/saved/savepoint-ab-7")
    ('s3://bucket/job/shared/chk-7', None)
    """
    parent, _, name = checkpoint_folder.rstrip("/").rpartition("/")
    return f"{parent}/shared/{name}" if re.fullmatch(r"chk-\d+", name) else None


def shared_path(checkpoint_id: int) -> str:
    """The same, as paths in the manifest of the checkpoint begin."""
    return f"{SHARED}chk-{checkpoint_id}"


def shared_names(files: Iterable[StateFile]) -> frozenset[str]:
    """Those files that lie in the shared folder, by their names in there."""
    names = (file.path for file in files if file.path.startswith(SHARED))
    return frozenset(name.removeprefix(SHARED) for name in names)


def is_written_by(checkpoint_id: int, file: StateFile) -> bool:
    """Whether a file was new in a checkpoint, and not of one before."""
    path = file.path
    return not path.startswith("../") or path.startswith(f"{shared_path(checkpoint_id)}/")


class SharedFiles:
    """Which checkpoints of one job need which shared files. Does no I/O."""

    def __init__(self) -> None:
        self.unneeded: set[str] = set()
        """To be deleted; whoever has deleted one takes it out."""
        self._files: dict[int, frozenset[str]] = {}
        """Of complete checkpoints."""
        self._bases: dict[int, int] = {}
        """Of those under way."""
        self._retired: set[int] = set()

    @property
    def needed(self) -> Set[str]:
        """All files that must stay."""
        return frozenset(chain.from_iterable(self._files.values()))

    def begin(self, checkpoint_id: int, base: int | None) -> None:
        """A checkpoint is under way, and may name files of its base."""
        self._bases[checkpoint_id] = base or 0

    def complete(self, checkpoint_id: int, files: Set[str]) -> None:
        """It can be restored, and needs these."""
        if files:
            self._files[checkpoint_id] = frozenset(files)
        self._end(checkpoint_id)

    def abort(self, checkpoint_id: int) -> None:
        """It came to nothing. What it has written is its own, and not known here."""
        self._end(checkpoint_id)

    def retire(self, checkpoint_id: int) -> None:
        """Nobody will restore it any more."""
        self._retired.add(checkpoint_id)
        self._release()

    def _end(self, checkpoint_id: int) -> None:
        self._bases.pop(checkpoint_id, None)
        self._release()

    def _release(self) -> None:
        gone = self._retired.difference(self._bases.values())
        released = [self._files.pop(id_, frozenset()) for id_ in gone]
        self._retired -= gone
        self.unneeded.update(chain.from_iterable(released))
        self.unneeded -= self.needed
