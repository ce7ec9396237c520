"""Until when a savepoint can be replayed: what its sources said when it was verified."""

from __future__ import annotations

import pytest

from controlplane.backends.errors import EngineRefused
from controlplane.snapshots.actions import request_savepoint, verify_savepoint
from controlplane.snapshots.inputs import known_input
from controlplane.snapshots.models import Savepoint


@pytest.fixture
def savepoint(running, alice, drive):
    drive(request_savepoint(running, alice))
    return Savepoint.objects.get()


@pytest.fixture
def verified(savepoint, alice, drive):
    def verify():
        assert drive(verify_savepoint(savepoint, alice)).error == ""
        savepoint.refresh_from_db()
        return known_input(savepoint.inputs)

    return verify


def test_nobody_has_looked_before_it_is_verified(savepoint):
    assert known_input(savepoint.inputs).state == "unknown"


def test_a_verification_names_what_is_gone(verified, engine, clock):
    engine.gaps = {"flights": "split 'a', lines from 2 on: no file"}
    found = verified()
    assert (found.state, found.at) == ("gone", clock.now)
    assert "flights: split 'a', lines from 2 on: no file" in found.text


def test_what_a_source_cannot_tell_is_unknown_and_not_there(verified, engine):
    engine.unsure = ["wire"]
    found = verified()
    assert (found.state, "wire cannot tell" in found.text) == ("unknown", True)


@pytest.mark.parametrize("kept", [{"uid": "a", "gone": [], "unknown": 0}])
def test_input_that_is_there_is_said_without_a_date(kept):
    found = known_input({"at": "2026-01-01T00:00:00+00:00", "why_not": "", "sources": [kept]})
    assert (found.state, "no source says for how long" in found.text) == ("there", True)


def test_a_graph_that_cannot_be_built_leaves_it_unknown_with_the_reason(verified, engine):
    engine.fail("preflight", EngineRefused("column delay is missing"))
    found = verified()
    assert (found.state, found.text) == ("unknown", "unknown: column delay is missing")
