"""What a running subtask answers about a key is what a snapshot of the moment would hold."""

from __future__ import annotations

import pytest

from engine.elements import Barrier, SnapshotKind
from engine.runtime.task import Task
from engine.state.lookup import WITH_VALUES
from golden_snapshots import MIDDLE_US, Run

PARALLELISM = 2


@pytest.fixture(scope="module")
def running() -> list[Task]:
    run = Run(PARALLELISM)
    run.until(lambda: run.world.now > MIDDLE_US)
    return list(run.attempt.tasks.values())


def test_each_key_has_what_a_snapshot_would_have(running: list[Task]) -> None:
    asked = set()
    for task in running:
        task.flush()
        for operator in task._chain.snapshot(Barrier(99, SnapshotKind.SAVEPOINT)):
            for state in operator.states:
                descriptor = state.descriptor
                if descriptor.kind not in WITH_VALUES:
                    continue
                table = state.table()
                for key, rows in table.partition_by(
                    "key_group", *descriptor.keys, as_dict=True, maintain_order=True
                ).items():
                    given = {
                        name: str(part) for name, part in zip(descriptor.keys, key[1:], strict=True)
                    }
                    found = task.look_up(operator.uid, descriptor.name, key[0], given, 1_000)()
                    assert found.equals(rows)
                    asked.add(descriptor.kind)
    assert asked == WITH_VALUES


def test_an_operator_that_is_not_here_is_refused(running: list[Task]) -> None:
    with pytest.raises(KeyError):
        running[0].look_up("nobody", "orders", 0, {}, 10)
