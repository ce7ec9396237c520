"""Migration of a state: from the columns that a snapshot stores to those that the job wants.

    stored types, wanted types --migration--> Migration, or the sentence why there is none
    Migration.apply(part of the stored table) --> the same rows as the job wants them

Shapes   a column is kept, renamed, widened (to a type that holds every value exactly), added with
         the default that its operator declares, or dropped. Keys may be renamed and widened only:
         key groups go by the value of whole numbers, whatever their width.
Cost     one pass over columns, part by part, as they are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from engine.checkpoint.format.entries import StateEntry
from engine.checkpoint.format.files import JsonObject
from engine.elements import KEY_GROUP
from engine.graph.plan import StatePlan
from engine.state.contract import SLICE_END, StateKind
from engine.state.schema import type_named

_EXACT_IN_FLOAT = ("Int8", "Int16", "Int32", "UInt8", "UInt16", "UInt32", "Float32")
"""What a Float64 holds without rounding."""


@dataclass(frozen=True, slots=True)
class ColumnMove:
    """Where one wanted column comes from."""

    name: str
    type: str
    stored: str | None = None
    """The stored column; None: every row has the default."""
    default: object = None

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        return {
            "name": self.name,
            "type": self.type,
            "stored": self.stored,
            "default": self.default,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> ColumnMove:
        """Read what `to_json` gave."""
        return cls(**value)

    @property
    def expression(self) -> pl.Expr:
        """The wanted column, of a stored table."""
        dtype = type_named(self.type)
        if self.stored is not None:
            return pl.col(self.stored).cast(dtype).alias(self.name)
        if isinstance(self.default, list):
            # A literal list would be one value per row.
            return pl.lit(pl.Series([self.default], dtype=dtype)).first().alias(self.name)
        return pl.lit(self.default, dtype=dtype).alias(self.name)


@dataclass(frozen=True, slots=True)
class Migration:
    """How the rows of one state become those that the job wants."""

    columns: tuple[ColumnMove, ...]
    steps: tuple[str, ...] = ()
    """What changes, for people; nothing: the state is taken as it is."""

    def apply(self, part: pl.DataFrame) -> pl.DataFrame:
        """Some rows of the stored table, as the job wants them."""
        return part.select(pl.col(KEY_GROUP), *(move.expression for move in self.columns))


class NoMigration(Exception):
    """The two cannot be put together; says why."""


class OtherKeys(NoMigration):
    """Their keys differ, so that no column of values matters."""

    def __init__(self) -> None:
        super().__init__("has other keys")


def migration(
    stored: StateEntry, wanted: StatePlan, renamed: Mapping[str, str] | None = None
) -> Migration:
    """Plan a migration; `renamed`: new names of stored columns. Raises NoMigration."""
    if stored.kind.value != wanted.kind:
        msg = "is another kind of state"
        raise NoMigration(msg)
    names = renamed or {}
    old = {names.get(name, name): name for name in (*stored.keys, *stored.values)}
    keys = [_kept(stored.keys, wanted.keys, name, old.get(name), key=True) for name in wanted.keys]
    if len(stored.keys) != len(wanted.keys):
        raise OtherKeys
    slices = [ColumnMove(SLICE_END, "Int64", SLICE_END)] if stored.kind is StateKind.RUNS else []
    values = [_value(stored, wanted, name, old.get(name)) for name in wanted.values]
    lost = [name for name in stored.values if names.get(name, name) not in wanted.values]
    _check_replaced([move.name for move in values if move.stored is None], lost)
    moves = (*keys, *slices, *values)
    return Migration(moves, tuple(_steps(stored, moves, lost)))


def _value(stored: StateEntry, wanted: StatePlan, name: str, old: str | None) -> ColumnMove:
    if old is not None:
        return _kept(stored.values, wanted.values, name, old, key=False)
    if name not in wanted.defaults:
        msg = f"has a new column {name!r} without a default"
        raise NoMigration(msg)
    return ColumnMove(name, wanted.values[name], None, wanted.defaults[name])


def _kept(
    stored: Mapping[str, str], wanted: Mapping[str, str], name: str, old: str | None, *, key: bool
) -> ColumnMove:
    if old is None or old not in stored:
        raise OtherKeys
    was, now = stored[old], wanted[name]
    if not holds(now, was) or (key and was != now and "Float" in now):
        msg = f"changes column {name!r} to a type that does not hold all of its values"
        raise NoMigration(msg)
    return ColumnMove(name, now, old)


def holds(wide: str, narrow: str) -> bool:
    """Whether every value of one type is a value of another.

    >>> holds("Int64", "Int32"), holds("Int32", "Int64"), holds("Float64", "Int64")
    (True, False, False)
    """
    if wide == narrow:
        return True
    if wide.startswith("List(") and narrow.startswith("List("):
        return holds(wide[5:-1], narrow[5:-1])
    if wide == "Float64":
        return narrow in _EXACT_IN_FLOAT
    wide_bits, narrow_bits = _bits(wide), _bits(narrow)
    if not wide_bits or not narrow_bits:
        return False
    if wide.startswith("U") and not narrow.startswith("U"):
        return False
    return wide_bits > narrow_bits


def _bits(name: str) -> int:
    """The width of a type of whole numbers; 0 for another type."""
    for prefix in ("Int", "UInt"):
        width = name.removeprefix(prefix)
        if width != name and width.isdecimal():
            return int(width)
    return 0


def _check_replaced(added: Sequence[str], lost: Sequence[str]) -> None:
    """What an aggregate has gathered cannot be turned into what another would have."""
    before, after = ({name.split(".")[0] for name in names} for names in (lost, added))
    for name in sorted(before & after):
        msg = f"keeps {name!r} in another way: what it has gathered cannot be converted"
        raise NoMigration(msg)


def _steps(stored: StateEntry, moves: Sequence[ColumnMove], lost: Sequence[str]) -> list[str]:
    types = {**stored.keys, **stored.values, SLICE_END: "Int64"}
    steps = [
        f"renames {move.stored} to {move.name}"
        for move in moves
        if move.stored is not None and move.stored != move.name
    ]
    steps += [
        f"widens {move.name} from {types[move.stored]} to {move.type}"
        for move in moves
        if move.stored is not None and types[move.stored] != move.type
    ]
    since = ", for open windows from now on" if stored.kind is StateKind.RUNS else ""
    added = [move.name for move in moves if move.stored is None]
    steps += [f"adds {', '.join(added)}{since}"] if added else []
    steps += [f"drops {', '.join(lost)}"] if lost else []
    return steps
