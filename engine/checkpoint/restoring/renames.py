"""Renames: what a snapshot calls operators, states and columns, and what the job calls them.

    "counts=daily"              operator `counts` is `daily` now
    "daily/slices=panes"        state `slices` of `daily` (its new uid) is `panes`
    "daily/panes/n=flights"     column `n` of that state is `flights`

Order    operators first, then states, then columns: each path is written with names that are new
         already, but for its last part.
Errors   RestoreError for a rename that is none, or that fits nothing in the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from engine.checkpoint.format.entries import OperatorEntry, StateEntry
from engine.checkpoint.format.manifest import Manifest
from engine.errors import RestoreError

RENAMES = "headwater.restore.renames"
"""The setting of a job that holds them, joined by semicolons."""


@dataclass(frozen=True, slots=True)
class Renames:
    """Old paths and the new names of their last parts."""

    names: Mapping[str, str] = field(default_factory=dict)

    def applied(self, manifest: Manifest) -> Manifest:
        """The manifest with operators and states under their new names. Raises RestoreError."""
        self._check(manifest)
        entries = tuple(self._operator(entry) for entry in manifest.operators)
        uids = [entry.uid for entry in entries]
        twice = sorted({uid for uid in uids if uids.count(uid) > 1})
        if twice:
            msg = f"two operators of the snapshot would be {twice[0]!r}: rename them apart"
            raise RestoreError(msg)
        return replace(manifest, operators=entries)

    def columns(self, uid: str, state: str) -> Mapping[str, str]:
        """New names of the stored columns of a state, by its new names."""
        prefix = f"{uid}/{state}/"
        return {
            path.removeprefix(prefix): new
            for path, new in self.names.items()
            if path.startswith(prefix)
        }

    def _operator(self, entry: OperatorEntry) -> OperatorEntry:
        uid = self.names.get(entry.uid, entry.uid)
        states = tuple(self._state(uid, state) for state in entry.states)
        return replace(entry, uid=uid, states=states)

    def _state(self, uid: str, state: StateEntry) -> StateEntry:
        return replace(state, name=self.names.get(f"{uid}/{state.name}", state.name))

    def _check(self, manifest: Manifest) -> None:
        known: set[str] = set()
        for entry in manifest.operators:
            uid = self.names.get(entry.uid, entry.uid)
            known.add(entry.uid)
            for state in entry.states:
                known.add(f"{uid}/{state.name}")
                name = self.names.get(f"{uid}/{state.name}", state.name)
                known |= {f"{uid}/{name}/{column}" for column in (*state.keys, *state.values)}
        for path in self.names:
            if path not in known:
                msg = (
                    f"rename fits nothing in the snapshot: got {path!r}; write uid=new, "
                    "uid/state=new or uid/state/column=new"
                )
                raise RestoreError(msg)


def renames_of(settings: Mapping[str, str]) -> Renames:
    """What the settings of a job rename, in the restore that it starts with. Raises RestoreError.

    >>> renames_of({RENAMES: "counts=daily; daily/slices=panes"}).names
    {'counts': 'daily', 'daily/slices': 'panes'}
    """
    given = settings.get(RENAMES, "").split(";")
    return parse_renames(text.strip() for text in given if text.strip())


def parse_renames(given: Iterable[str]) -> Renames:
    """Read renames as people write them. Raises RestoreError.

    >>> parse_renames(["counts=daily"]).names
    {'counts': 'daily'}
    """
    names = {}
    for text in given:
        path, equals, new = text.rpartition("=")
        if not (path and equals and new):
            msg = f"rename must be old=new: got {text!r}; write e.g. counts=daily"
            raise RestoreError(msg)
        names[path] = new
    return Renames(names)
