"""Faults put into the engine on purpose: a few histories find each, so silence means something.

A new guarantee of the engine should have a line here: the smallest change of the code that breaks
it, and the scenario whose histories show that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.checkpoint.format import writer
from engine.checkpoint.format.shared import SharedFiles
from engine.elements import MIN_TIME
from engine.operators.sink import SinkRun
from engine.operators.sources.source_splits import OpenSplit, SplitState
from engine.operators.windows import partial_aggregate
from engine.runtime.alignment import Alignment
from engine.runtime.chain import Chain
from engine.runtime.task import Task
from engine.state import memory
from engine.testing.memory import OutputTables
from engine.testing.scenario import Scenario
from engine.testing.scenarios import catalogue

Break = Callable[[pytest.MonkeyPatch], None]

SCENARIOS = catalogue()


def no_alignment(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Alignment, "blocks", lambda *_: False)


def barriers_overtake_what_is_held_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Chain, "flush", lambda _: None)


def sinks_commit_more_than_is_complete(patch: pytest.MonkeyPatch) -> None:
    commit = SinkRun.commit
    patch.setattr(SinkRun, "commit", lambda sink, id_: commit(sink, id_ + 1))


def sinks_forget_what_they_staged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SinkRun, "committables", ())


def sinks_never_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SinkRun, "commit", lambda *_: None)


def rows_are_written_once_per_commit(patch: pytest.MonkeyPatch) -> None:
    def commit(tables: OutputTables, committable: str) -> None:
        rows = tables.staged.pop(committable, None) or tables.committed[committable]
        tables.committed[committable] = [*tables.committed.get(committable, []), *rows]

    patch.setattr(OutputTables, "commit", commit)


def state_of_splits() -> Callable[[OpenSplit], SplitState]:
    read = vars(OpenSplit)["state"].fget
    return lambda split: read(split)


def positions_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    state = state_of_splits()
    patch.setattr(OpenSplit, "state", property(lambda split: replace(state(split), position=0)))


def watermarks_of_splits_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    state = state_of_splits()
    forgotten = property(lambda split: replace(state(split), watermark=MIN_TIME))
    patch.setattr(OpenSplit, "state", forgotten)


def a_barrier_that_comes_again_begins_again(patch: pytest.MonkeyPatch) -> None:
    trigger = Task.trigger

    def again(task: Task, *args: object) -> None:
        task._newest_id = 0
        trigger(task, *args)

    patch.setattr(Task, "trigger", again)


def lateness_is_decided_by_arrival(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(partial_aggregate, "row_marks", lambda *_: None)
    patch.setattr(partial_aggregate, "_behind", lambda _: None)


def every_subtask_restores_all_keys(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(memory, "rows_of", lambda table, _: table)
    patch.setattr("engine.checkpoint.format.tables.rows_of", lambda table, _: table)


def layers_are_left_out(patch: pytest.MonkeyPatch) -> None:
    layer = writer._Writing._layer
    patch.setattr(writer._Writing, "_layer", lambda *args: layer(*args)[:1])


def shared_files_are_deleted_too_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharedFiles, "needed", frozenset())


FAULTS: dict[Break, str] = {
    no_alignment: "sums",
    barriers_overtake_what_is_held_back: "sums",
    sinks_commit_more_than_is_complete: "copies",
    sinks_forget_what_they_staged: "copies",
    sinks_never_commit: "copies",
    rows_are_written_once_per_commit: "copies",
    positions_are_forgotten: "copies",
    watermarks_of_splits_are_forgotten: "sums",
    a_barrier_that_comes_again_begins_again: "copies",
    lateness_is_decided_by_arrival: "sums",
    every_subtask_restores_all_keys: "sums",
    layers_are_left_out: "triggers",
    shared_files_are_deleted_too_early: "reminders",
}
"""What is broken, and where it shows."""

MOST = 60
"""Histories in which it has to show; most faults do in the first few."""


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.__name__ for fault in FAULTS])
def test_a_few_histories_find(fault: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = SCENARIOS[FAULTS[fault]]
    assert scenario.undisturbed
    fault(monkeypatch)
    assert any(finds(scenario, seed) for seed in range(MOST))


def finds(scenario: Scenario, seed: int) -> bool:
    """Whether a history breaks the law, or breaks down."""
    try:
        return scenario.differs(scenario.history(seed)) is not None
    except Exception:  # noqa: BLE001 - whatever the fault leads to
        return True
