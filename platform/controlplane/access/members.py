"""Teams and who is in them.

Guarantee   A team that has an admin keeps one: the last cannot be removed or given a lower role.
Errors      Refused, with one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Count, Prefetch, QuerySet

from controlplane.access.errors import conflict, invalid, not_found
from controlplane.access.lookup import (
    RANK,
    require_in,
    require_platform_admin,
    roles_of,
    visible_teams,
)
from controlplane.access.models import Membership, Role, Team
from controlplane.audit.record import record

RESERVED = frozenset({"new", "add"})


@dataclass(frozen=True, slots=True)
class TeamRow:
    """One team in the list."""

    team: Team
    role: Role | None
    """Of the person who looks."""
    jobs: int
    members: tuple[Membership, ...]


def team_rows(user: User) -> tuple[TeamRow, ...]:
    """The teams that this person sees, with their people."""
    roles = roles_of(user)
    people = Membership.objects.select_related("user").order_by("user__username")
    found = visible_teams(user).annotate(job_count=Count("jobs", distinct=True))
    return tuple(
        TeamRow(
            team,
            roles.get(team.name),
            int(team.__dict__["job_count"]),
            tuple(team.memberships.all()),
        )
        for team in found.order_by("name").prefetch_related(Prefetch("memberships", people))
    )


def members_of(team: Team) -> tuple[Membership, ...]:
    """Its people, admins first."""
    found: QuerySet[Membership] = team.memberships.select_related("user")
    return tuple(sorted(found, key=lambda one: (-RANK[Role(one.role)], one.user.username)))


@transaction.atomic
def create_team(actor: User, name: str) -> Team:
    """A team without people. Platform admin."""
    require_platform_admin(actor)
    team = Team(name=name.strip())
    try:
        team.clean_fields()
    except ValidationError:
        msg = f"team name {name[:64]!r} cannot be used: use letters, digits, dashes, up to 64"
        raise invalid(msg, "name") from None
    if team.name in RESERVED:
        msg = f"team name {team.name} is reserved: choose another"
        raise invalid(msg, "name")
    try:
        with transaction.atomic():
            team.save()
    except IntegrityError:
        msg = f"team name {team.name} is taken: choose another"
        raise invalid(msg, "name") from None
    record(actor, "team.create", team.name, team=team)
    return team


@transaction.atomic
def set_role(team: Team, actor: User, name: str, role: Role) -> Membership:
    """Take a person into the team, or give them another role there. Admin."""
    require_in(actor, team, Role.ADMIN)
    Team.objects.select_for_update().get(pk=team.pk)  # of two admins one goes first
    person = _active(name)
    before = Membership.objects.filter(team=team, user=person).first()
    if before and before.role == Role.ADMIN and role != Role.ADMIN:
        _check_not_last(team, person)
    after, _ = Membership.objects.update_or_create(team=team, user=person, defaults={"role": role})
    was = {"role": before.role} if before else {}
    target = f"{person.username} in team {team.name}"
    record(actor, "member.role", target, team=team, before=was, after={"role": role.value})
    return after


@transaction.atomic
def remove_member(team: Team, actor: User, name: str) -> None:
    """End a person's part in the team; what they did stays. Admin."""
    require_in(actor, team, Role.ADMIN)
    Team.objects.select_for_update().get(pk=team.pk)
    found = team.memberships.select_related("user").filter(user__username=name).first()
    if found is None:
        what = "member"
        raise not_found(what, f"{name} of team {team.name}")
    if found.role == Role.ADMIN:
        _check_not_last(team, found.user)
    target = f"{name} in team {team.name}"
    record(actor, "member.remove", target, team=team, before={"role": found.role})
    found.delete()


def role_of(team: Team, name: str) -> Role | None:
    """The role of the person of that name; None when there is none in the team."""
    found = team.memberships.filter(user__username=name.strip()).first()
    return Role(found.role) if found else None


def gains_and_losses(before: Role | None, after: Role | None) -> str:
    """What a change of role means for the person, in a few words.

    >>> gains_and_losses(Role.VIEWER, Role.OPERATOR)
    'gains what an operator may do'
    """
    was, now = RANK[before] if before else 0, RANK[after] if after else 0
    if now > was and after:
        return f"gains what {_a(after)} may do"
    return f"loses what {_a(before)} may do" if before and now < was else "changes nothing"


def _a(role: Role) -> str:
    return f"a {role}" if role == Role.VIEWER else f"an {role}"


def _active(name: str) -> User:
    person = User.objects.filter(username=name.strip(), is_active=True).first()
    if person is None:
        msg = f"there is no active user {name.strip()[:150]!r}: a platform admin can add one"
        raise invalid(msg, "user")
    return person


def _check_not_last(team: Team, person: User) -> None:
    others = team.memberships.filter(role=Role.ADMIN, user__is_active=True).exclude(user=person)
    if not others.exists():
        msg = f"{person.username} is the last admin of team {team.name}: make another one first"
        raise conflict(msg)
