"""A job that is given to another team."""

from __future__ import annotations

import pytest
from django.utils import timezone

from controlplane.access.errors import Refused
from controlplane.access.lookup import visible_jobs
from controlplane.access.models import Membership, Role, Team
from controlplane.alerts.actions import add_rule
from controlplane.alerts.evaluation import evaluate
from controlplane.alerts.models import Alert
from controlplane.audit.queries import AuditFilter, audit_entries
from controlplane.jobs.moving import change_team, teams_for

WATCHED = {"measure": "not_running", "threshold": 0, "for_seconds": 0, "severity": "warn"}


@pytest.fixture
def rides(alice):
    """Another team of alice's, of which mallory is too."""
    team = Team.objects.create(name="rides")
    Membership.objects.create(user=alice, team=team, role=Role.ADMIN)
    return team


def test_its_people_lose_it_and_the_others_get_it(flights, rides, alice, bob, mallory):
    Membership.objects.create(user=mallory, team=rides, role=Role.VIEWER)
    assert teams_for(flights, alice) == ("rides",)
    change_team(flights, alice, rides, "reorganised")

    assert list(visible_jobs(bob)) == []
    assert list(visible_jobs(mallory)) == [flights]
    for reader in (bob, mallory):  # of the old team, and of the new one
        (entry,) = audit_entries(reader, AuditFilter(action="job.team"))
        assert (entry.actor, entry.reason) == (alice, "reorganised")
        assert entry.before == {"team": "payments"}
        assert entry.after == {"team": "rides", "alert_rules": 0}


def test_rules_about_it_alone_go_with_it_and_those_of_the_team_look_no_more(
    flights, rides, team, alice
):
    own = add_rule(team, flights, alice, **WATCHED)
    of_all = add_rule(team, None, alice, **WATCHED)
    for rule in (own, of_all):
        Alert.objects.create(
            rule=rule, job=flights, state="firing", since=timezone.now(), seen_at=timezone.now()
        )
    change_team(flights, alice, rides)
    evaluate(timezone.now())

    own.refresh_from_db()
    assert own.team == rides
    assert Alert.objects.get(rule=of_all).state == "resolved"


@pytest.mark.parametrize("role", [None, Role.OPERATOR])
def test_only_an_admin_of_both_gives_it(flights, rides, alice, role):
    Membership.objects.filter(user=alice, team=rides).delete()
    if role:
        Membership.objects.create(user=alice, team=rides, role=role)
    assert teams_for(flights, alice) == ()
    with pytest.raises(Refused, match="needs the admin role in team rides"):
        change_team(flights, alice, rides)


def test_it_is_not_given_to_its_own_team(flights, team, alice):
    with pytest.raises(Refused, match="is team payments's already: choose another team"):
        change_team(flights, alice, team)
