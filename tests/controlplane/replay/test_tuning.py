"""When a replay has caught up and how long it can be rolled back: changed by people, audited."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from controlplane.access.errors import Refused
from controlplane.audit.models import AuditEntry
from controlplane.replay.actions import promote_replay, rollback_replay
from controlplane.replay.models import Replay
from controlplane.replay.readiness import promotion, rollback
from controlplane.replay.tuning import Tuning, tune_replay
from operation_cases import caught_up


@pytest.fixture
def replay(flights, alice, engine, drive):
    return caught_up(flights, alice, engine, drive)


def test_the_page_changes_them_with_the_audit_of_before_and_after(replay, alice, bob, client):
    address = reverse("dashboard:tune_replay", args=[replay.pk])
    fields = {"level_within_s": "60", "level_for_s": "300", "back_days": "2"}
    client.force_login(bob)
    assert client.post(address, fields).status_code == 403
    client.force_login(alice)
    for _ in range(2):
        assert client.post(address, fields).status_code == 302
    entry = AuditEntry.objects.get(action="replay.tune")
    assert (entry.before["level_within_s"], entry.after["level_within_s"]) == (None, 60.0)
    text = client.get(reverse("dashboard:replay", args=[replay.pk])).content.decode()
    assert 'value="300"' in text
    assert "kept for 2 d" in text
    refused = client.post(address, fields | {"back_days": "-1"})
    assert "days to roll back in must be from 0 to 366: got -1" in refused.content.decode().lower()


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0, 1e12])
def test_what_cannot_be_meant_is_refused(wrong):
    for name in ("level_within_s", "level_for_s", "back_days"):
        with pytest.raises(Refused, match="must be from 0 to"):
            Tuning(**{name: wrong})


def test_it_can_be_rolled_back_in_time_and_not_later(replay, alice, drive):
    drive(promote_replay(replay, alice))
    replay.refresh_from_db()
    in_time = rollback(replay).conditions[1]
    assert (in_time.state, " are left, until " in in_time.text) == ("met", True)
    Replay.objects.update(promoted_at=timezone.now() - timedelta(days=1))
    tune_replay(replay, alice, Tuning(back_days=0.5))
    with pytest.raises(
        Refused, match=r"its 12 h for that ended on .*; start the old version from a savepoint"
    ):
        rollback_replay(replay, alice)
    tune_replay(replay, alice, Tuning(back_days=9.0))
    assert rollback(Replay.objects.get(pk=replay.pk)).ok


def test_one_that_fell_behind_again_warns_and_can_be_promoted_all_the_same(replay):
    Replay.objects.update(
        fell_behind_at=replay.created_at + timedelta(seconds=9), fell_behind="2 h behind"
    )
    replay.refresh_from_db()
    answer = promotion(replay)
    (caught,) = (one for one in answer.conditions if one.title == "Caught up")
    assert (answer.ok, caught.state) == (True, "warn")
    assert caught.text.endswith(": 2 h behind")
