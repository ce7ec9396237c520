"""Teams, who is in them, and who may log in at all."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from controlplane.access import members, people
from controlplane.access.errors import Refused
from controlplane.access.lookup import role_in
from controlplane.access.models import Role, Team
from controlplane.audit.models import AuditEntry


@pytest.fixture
def root(db):
    return User.objects.create_superuser("root")


def test_an_admin_takes_somebody_in_and_changes_their_role(team, alice, mallory):
    members.set_role(team, alice, "mallory", Role.VIEWER)
    members.set_role(team, alice, " mallory ", Role.OPERATOR)

    assert role_in(mallory, team) == Role.OPERATOR
    entry = AuditEntry.objects.filter(action="member.role").order_by("-id").first()
    assert (entry.before, entry.after) == ({"role": "viewer"}, {"role": "operator"})
    assert (entry.actor, entry.team) == (alice, team)


def test_only_an_admin_changes_who_is_in_a_team(team, alice, bob):
    for change in (
        lambda: members.set_role(team, bob, "bob", Role.ADMIN),
        lambda: members.remove_member(team, bob, "alice"),
    ):
        with pytest.raises(Refused, match="needs the admin role in team payments"):
            change()


def test_the_last_admin_of_a_team_stays(team, alice, bob):
    for change in (
        lambda: members.set_role(team, alice, "alice", Role.VIEWER),
        lambda: members.remove_member(team, alice, "alice"),
    ):
        with pytest.raises(Refused, match="alice is the last admin of team payments"):
            change()
    members.set_role(team, alice, "bob", Role.ADMIN)
    members.remove_member(team, alice, "alice")
    assert role_in(alice, team) is None


def test_an_admin_who_is_locked_out_does_not_count(team, alice, bob):
    members.set_role(team, alice, "bob", Role.ADMIN)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    with pytest.raises(Refused, match="last admin"):
        members.remove_member(team, alice, "alice")


@pytest.mark.parametrize("name", ["nobody", "", "<b>"])
def test_nobody_can_be_taken_in_who_is_not_there(team, alice, name):
    with pytest.raises(Refused, match="there is no active user"):
        members.set_role(team, alice, name, Role.VIEWER)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "new", "../x"])
def test_a_team_has_a_name_that_an_address_can_hold(root, name):
    with pytest.raises(Refused, match="team name"):
        members.create_team(root, name)
    assert not Team.objects.exists()


def test_a_name_is_given_once(root, team):
    with pytest.raises(Refused, match="team name payments is taken"):
        members.create_team(root, "payments")
    people.add_person(root, "zoe")
    with pytest.raises(Refused, match="user name zoe is taken"):
        people.add_person(root, "zoe")


def test_an_admin_of_a_team_is_no_admin_of_the_platform(alice, bob):
    for act in (
        lambda: people.people(alice),
        lambda: people.add_person(alice, "zoe"),
        lambda: people.set_active(bob, alice, active=False),
        lambda: people.set_platform_admin(alice, alice, admin=True),
        lambda: people.make_login(bob, alice, timezone.now()),
        lambda: members.create_team(alice, "mine"),
    ):
        with pytest.raises(Refused, match="needs the platform admin role"):
            act()


def test_somebody_new_has_no_password_and_comes_in_by_a_link(root, client):
    person = people.add_person(root, "zoe")
    assert not person.has_usable_password()

    token = people.make_login(person, root, timezone.now())
    assert client.get(f"/login/once/{token}/").url == "/jobs/"
    assert not AuditEntry.objects.filter(after__icontains=token).exists()


def test_who_is_locked_out_is_out_at_once(root, bob, client):
    client.force_login(bob)
    assert client.get("/jobs/").status_code == 200
    people.set_active(bob, root, active=False)

    assert client.get("/jobs/").status_code == 302
    with pytest.raises(Refused, match="locked out: let them in first"):
        people.make_login(User.objects.get(pk=bob.pk), root, timezone.now())
    with pytest.raises(Refused, match="is locked out already"):
        people.set_active(bob, root, active=False)


def test_one_platform_admin_stays(root):
    with pytest.raises(Refused, match="last platform admin"):
        people.set_active(root, root, active=False)
    with pytest.raises(Refused, match="last platform admin"):
        people.set_platform_admin(root, root, admin=False)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (None, Role.VIEWER, "gains what a viewer may do"),
        (Role.ADMIN, Role.VIEWER, "loses what an admin may do"),
        (Role.OPERATOR, Role.OPERATOR, "changes nothing"),
    ],
)
def test_a_change_of_role_says_what_it_means(before, after, says):
    assert members.gains_and_losses(before, after) == says
