"""Slots: the different keys of a batch, numbered, so that its rows find theirs by a number.

Cost     one look-up per row by the key's own value, and one tuple per different key: with one key
         column half of what a tuple per row takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.operators.records.rows import Columns
from engine.state.handles import Key


def slots_of(
    columns: Columns, names: Sequence[str], groups: Sequence[int]
) -> tuple[list[Key], list[int]]:
    """The different keys of a batch, with their key groups, and the place of each row's among them.

    >>> slots_of({"user": ["ann", "bob", "ann"]}, ["user"], groups=[7, 9, 7])
    ([(7, 'ann'), (9, 'bob')], [0, 1, 0])
    """
    if len(names) == 1:
        values = columns[names[0]]
        group_of = dict(zip(values, groups, strict=True))
        keys: list[Key] = [(group, value) for value, group in group_of.items()]
    else:
        found = [columns[name] for name in names]
        values = list(zip(*found, strict=True)) if found else [()] * len(groups)
        group_of = dict(zip(values, groups, strict=True))
        keys = [(group, *value) for value, group in group_of.items()]
    slots = {value: slot for slot, value in enumerate(group_of)}
    return keys, list(map(slots.__getitem__, values))
