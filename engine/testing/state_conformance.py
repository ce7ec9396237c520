"""Conformance suite of state backends: whoever writes one proves with one call that it keeps the
contract of `state/contract.py`.

    check_state_backend(lambda key_groups: MemoryBackend(key_groups))

What a backend has to do is told by plain dicts and sets that get the same random writes; what they
hold must be what the handles give and what the canonical tables hold, also after a freeze, on
another thread, and after a restore by halves of the key groups, in which a backend may change into
another: `restore_with`. The suite raises AssertionError with one sentence.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from engine.testing.state_checks.keyed import (
    check_agenda,
    check_broadcast,
    check_names,
    check_shapes,
    check_values,
)
from engine.testing.state_checks.rows import check_frames, check_held, check_rows
from engine.testing.state_checks.runs import check_runs
from engine.testing.state_checks.shared import Make
from engine.testing.state_checks.timers import check_timers


def check_state_backend(
    make: Make, *, restore_with: Make | None = None, seeds: Iterable[int] = range(3)
) -> None:
    """Check a backend. `make`: an empty one for a range of key groups."""
    for seed in seeds:
        random = Random(seed)  # noqa: S311  test data
        check_values(make, restore_with or make, random)
        check_timers(make, restore_with or make, random)
        check_rows(make, restore_with or make, random)
        check_frames(make, restore_with or make, random)
        check_held(make, restore_with or make, random)
        check_runs(make, restore_with or make, random)
    check_broadcast(make, restore_with or make)
    check_agenda(make)
    check_names(make)
    check_shapes(make)
