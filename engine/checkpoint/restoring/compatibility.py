"""Whether a snapshot fits a job, decided before anything starts; the preflight that people see.

    check_restore(manifest, plan) --> RestoreReport: one row per operator and state
        RESTORED       found in both, same types
        NEW            only in the job: starts empty
        DROPPED        only in the snapshot: lost, which has to be allowed per operator
        MIGRATES       found in both, and stored rows become what the job wants: see migration.py
        INCOMPATIBLE   found in both, and cannot be put together
        MISSING_INPUT  a source needs input that is not there any more: consent ends those splits

Order    operators are matched by uid, states by name; rows follow the plan, then the snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from engine.checkpoint.format.entries import OperatorEntry, StateEntry
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.inputs import Inputs, SourceInput
from engine.checkpoint.restoring.migration import NoMigration, OtherKeys, migration
from engine.checkpoint.restoring.renames import Renames
from engine.elements import MAX_TIME
from engine.errors import RestoreError
from engine.graph.plan import OperatorKind, OperatorPlan, Plan, StatePlan
from engine.version import VERSION


class Outcome(StrEnum):
    """What a restore does with one operator or state."""

    RESTORED = "restored"
    MIGRATES = "migrates"
    NEW = "new"
    DROPPED = "dropped"
    INCOMPATIBLE = "incompatible"
    MISSING_INPUT = "missing_input"


@dataclass(frozen=True, slots=True)
class RestoreRow:
    """One line of the report."""

    uid: str
    name: str
    outcome: Outcome
    state: str | None = None
    """None: the operator itself, its splits or its staged output."""
    reason: str = ""
    stored: str = ""
    wanted: str = ""
    rows: int = 0
    """Rows of state in the snapshot."""
    size_bytes: int = 0
    allowed: bool = True
    """Whether the restore may go on in spite of this row."""

    @property
    def sentence(self) -> str:
        """The row for people."""
        what = f"operator {self.uid!r}"
        if self.state is not None:
            what += f", state {self.state!r}"
        return f"{what}: {self.reason or self.outcome.value}"


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What a restore would do."""

    rows: tuple[RestoreRow, ...]
    warnings: tuple[str, ...] = ()

    @property
    def refused(self) -> tuple[RestoreRow, ...]:
        """Rows that stand in the way."""
        return tuple(row for row in self.rows if not row.allowed)

    def raise_if_refused(self) -> None:
        """Raise RestoreError when the snapshot does not fit."""
        if self.refused:
            reasons = "; ".join(row.sentence for row in self.refused)
            msg = f"snapshot does not fit the job: {reasons}"
            raise RestoreError(msg)


def check_restore(
    manifest: Manifest,
    plan: Plan,
    allow_non_restored: bool | Collection[str] = (),
    renames: Renames = Renames(),  # noqa: B008 - it is frozen
    inputs: Inputs = MappingProxyType({}),
    accept_missing: Collection[str] = (),
) -> RestoreReport:
    """Compare a snapshot with a job. Raises RestoreError for renames that fit nothing.

    `allow_non_restored`: uids and uid/state of what may be lost, True for all; `inputs`: what the
    job's sources say of their input; `accept_missing`: uids of those that may go on without it.
    """
    manifest = renames.applied(manifest)
    planned = {operator.uid: operator for operator in plan.operators}
    rows = list(_check_parallelism(manifest, plan))
    for uid, operator in planned.items():
        entry = manifest.operator(uid)
        rows += _check_operator(operator, entry, allow_non_restored, renames, inputs.get(uid))
        if uid in inputs and inputs[uid].gaps:
            rows.append(_gone(operator, inputs[uid], uid in accept_missing))
    for entry in manifest.operators:
        if entry.uid not in planned and not entry.is_empty:
            rows.append(_lost(entry, _allows(allow_non_restored, entry.uid)))
    return RestoreReport(tuple(rows), tuple(_warnings(manifest)))


def _check_parallelism(manifest: Manifest, plan: Plan) -> Iterator[RestoreRow]:
    """Key groups are part of every keyed state, so their number can never change."""
    for entry in manifest.operators:
        if entry.states and entry.max_parallelism != plan.max_parallelism:
            yield RestoreRow(
                uid=entry.uid,
                name=entry.name,
                outcome=Outcome.INCOMPATIBLE,
                reason=(
                    f"max parallelism cannot change: stored {entry.max_parallelism}, wanted "
                    f"{plan.max_parallelism}; set it to {entry.max_parallelism}"
                ),
                stored=str(entry.max_parallelism),
                wanted=str(plan.max_parallelism),
                allowed=False,
            )


def _check_operator(
    operator: OperatorPlan,
    entry: OperatorEntry | None,
    allowed: bool | Collection[str],
    renames: Renames,
    known: SourceInput | None,
) -> Iterator[RestoreRow]:
    if entry is None or entry.is_empty:
        if operator.states or operator.kind is OperatorKind.SOURCE:
            yield RestoreRow(operator.uid, operator.name, Outcome.NEW, reason="starts empty")
        return
    if entry.splits and operator.kind is not OperatorKind.SOURCE:
        yield RestoreRow(
            uid=operator.uid,
            name=operator.name,
            outcome=Outcome.INCOMPATIBLE,
            reason="was a source and is none now; give the new operator another uid",
            allowed=False,
        )
        return
    if entry.splits:
        yield RestoreRow(
            operator.uid, operator.name, Outcome.RESTORED, reason=_splits(entry.splits, known)
        )
    wanted = {state.name: state for state in operator.states}
    stored = {state.name: state for state in entry.states}
    for name, state in wanted.items():
        columns = renames.columns(operator.uid, name)
        yield _check_state(operator, state, stored.get(name), columns)
    for name in sorted(stored.keys() - wanted.keys()):
        ok = _allows(allowed, entry.uid) or _allows(allowed, f"{entry.uid}/{name}")
        yield _lost_state(entry, stored[name], ok)


def _check_state(
    operator: OperatorPlan,
    wanted: StatePlan,
    stored: StateEntry | None,
    renamed: Mapping[str, str],
) -> RestoreRow:
    if stored is None:
        return RestoreRow(
            operator.uid, operator.name, Outcome.NEW, wanted.name, reason="starts empty"
        )
    was, now = _shape(stored), _shape(wanted)
    try:
        steps = migration(stored, wanted, renamed).steps
        outcome = Outcome.MIGRATES if steps else Outcome.RESTORED
        reason = "; ".join(steps)
    except NoMigration as error:
        outcome = Outcome.INCOMPATIBLE
        had, wants = was, now
        if isinstance(error, OtherKeys):
            had, wants = _columns(stored.keys), _columns(wanted.keys)
        reason = (
            f"{error}: stored {had}, wanted {wants}; keep the types, or give the operator another "
            "uid to start it empty"
        )
    return RestoreRow(
        uid=operator.uid,
        name=operator.name,
        outcome=outcome,
        state=wanted.name,
        reason=reason,
        stored=was,
        wanted=now,
        rows=stored.rows,
        size_bytes=stored.size_bytes,
        allowed=outcome is not Outcome.INCOMPATIBLE,
    )


def _lost(entry: OperatorEntry, allowed: bool) -> RestoreRow:
    parts = [f"state {state.name!r} with {state.rows} rows" for state in entry.states]
    if entry.splits:
        parts.append(f"the positions of {len(entry.splits)} splits")
    if entry.committables:
        parts.append(f"{len(entry.committables)} staged outputs")
    return RestoreRow(
        uid=entry.uid,
        name=entry.name,
        outcome=Outcome.DROPPED,
        reason=f"is in the snapshot and not in the job: {', '.join(parts)} would be lost; keep "
        "its uid, or allow it as non-restored",
        rows=sum(state.rows for state in entry.states),
        size_bytes=sum(state.size_bytes for state in entry.states),
        allowed=allowed,
    )


def _lost_state(entry: OperatorEntry, state: StateEntry, allowed: bool) -> RestoreRow:
    return RestoreRow(
        uid=entry.uid,
        name=entry.name,
        outcome=Outcome.DROPPED,
        state=state.name,
        reason=f"is in the snapshot and not in the job: {state.rows} rows would be lost; keep the "
        f"state, or allow {entry.uid}/{state.name} as non-restored",
        stored=_shape(state),
        rows=state.rows,
        size_bytes=state.size_bytes,
        allowed=allowed,
    )


def _warnings(manifest: Manifest) -> Iterator[str]:
    if manifest.engine_version != VERSION:
        yield f"snapshot was written by engine {manifest.engine_version}, this one is {VERSION}"
    splits = [split for entry in manifest.operators for split in entry.splits.values()]
    drained = any(entry.watermark == MAX_TIME for entry in manifest.operators)
    if drained and not all(split.finished for split in splits):
        yield (
            "snapshot was taken at a drain: windows that were open then have fired, and fire again "
            "for the rows that follow"
        )


def _allows(allowed: bool | Collection[str], uid: str) -> bool:
    return allowed if isinstance(allowed, bool) else uid in allowed


def _gone(operator: OperatorPlan, known: SourceInput, allowed: bool) -> RestoreRow:
    return RestoreRow(
        uid=operator.uid,
        name=operator.name,
        outcome=Outcome.MISSING_INPUT,
        reason="input that it has not read is not there any more: "
        f"{'; '.join(known.sentences)}; bring it back, choose a later snapshot, or accept that the "
        "job goes on without it",
        allowed=allowed,
    )


def _splits(splits: Mapping[str, object], known: SourceInput | None) -> str:
    """How many go on; those without input are told of in a row of their own."""
    count = len(splits) - (0 if known is None else len(known.gaps))
    text = f"goes on with {count} split{'' if count == 1 else 's'}"
    if known is not None and known.choice:
        text = known.choice
    if known is None or not known.unknown:
        return text
    return f"{text}; it does not say whether their input is still there"


def _shape(state: StateEntry | StatePlan) -> str:
    return f"{state.kind} ({_columns(state.keys)} → {_columns(state.values)})"


def _columns(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {dtype}" for name, dtype in columns.items())
