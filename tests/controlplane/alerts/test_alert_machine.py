"""The life of an alert: edges, and no flapping whatever the values do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.alerts.machine import Look, Phase, judge, step

START = datetime(2026, 11, 30, tzinfo=UTC)
HOLD = timedelta(seconds=60)


def play(looks, hold=HOLD, every_s=10):
    """The alert after each look; a resolved one is closed, and the next breach begins another."""
    life, seen = None, []
    for number, look in enumerate(looks):
        open_life = None if life is not None and life.phase is Phase.RESOLVED else life
        life = step(open_life, look, START + number * timedelta(seconds=every_s), hold)
        seen.append(life.phase if life else None)
    return seen


@pytest.mark.parametrize(
    ("value", "look"), [(4.9, Look.WELL), (5.0, Look.BREACHED), (None, Look.UNKNOWN)]
)
def test_a_threshold_is_breached_from_its_value_on(value, look):
    assert judge(value, 5.0) is look


def test_it_fires_when_it_was_breached_for_so_long_and_not_before():
    assert play([Look.BREACHED] * 7) == [Phase.PENDING] * 6 + [Phase.FIRING]
    assert play([Look.BREACHED], hold=timedelta(0)) == [Phase.FIRING]


def test_one_look_that_is_well_begins_anew():
    looks = [*[Look.BREACHED] * 5, Look.WELL, *[Look.BREACHED] * 6]
    assert Phase.FIRING not in play(looks)


def test_it_is_over_when_it_was_well_for_so_long_and_not_before():
    looks = [*[Look.BREACHED] * 7, *[Look.WELL] * 7]
    assert play(looks)[6:] == [Phase.FIRING] * 7 + [Phase.RESOLVED]


def test_what_is_unknown_ends_what_is_pending_and_leaves_what_fires():
    assert play([Look.BREACHED, Look.UNKNOWN]) == [Phase.PENDING, None]
    assert play([*[Look.BREACHED] * 7, *[Look.UNKNOWN] * 60])[-1] is Phase.FIRING


@given(st.lists(st.sampled_from(Look), max_size=40), st.integers(0, 120))
def test_it_never_changes_twice_within_its_time(looks, hold_s):
    hold = timedelta(seconds=hold_s)
    phases = play(looks, hold)
    changes = [
        (number * 10, phase)
        for number, (before, phase) in enumerate(zip([None, *phases], phases, strict=False))
        if phase in {Phase.FIRING, Phase.RESOLVED} and phase is not before
    ]
    # It fires after being breached for `hold`, and ends after being well for it: so they alternate.
    assert [phase for _, phase in changes] == [Phase.FIRING, Phase.RESOLVED] * (
        len(changes) // 2
    ) + [Phase.FIRING] * (len(changes) % 2)
    for (first, _), (second, _) in pairwise(changes):
        assert second - first >= hold_s


@given(st.lists(st.sampled_from(Look), max_size=30))
def test_firing_means_breached_on_end(looks):
    phases = play(looks)
    for number, (before, phase) in enumerate(zip([None, *phases], phases, strict=False)):
        if phase is Phase.FIRING and before is Phase.PENDING:
            assert looks[number - 6 : number + 1] == [Look.BREACHED] * 7
