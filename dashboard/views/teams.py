"""Teams: who is in which, with which role; and what each role may do."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from controlplane.access import members
from controlplane.access.abilities import ABILITIES
from controlplane.access.lookup import allows, is_platform_admin, team_for
from controlplane.access.models import Role
from dashboard.access_forms import MemberForm, NameForm
from dashboard.answers import checked, said
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """The teams of this person."""
    context = {
        "section": "teams",
        "rows": members.team_rows(request.user),
        "may_create": is_platform_admin(request.user),
    }
    return render(request, "teams/list.html", context)


@login_required
@require_POST
def create(request: UserRequest) -> HttpResponse:
    """A new team."""
    team = members.create_team(request.user, checked(NameForm(request.POST))["name"])
    return said(
        request, f"Team {team.name} is here; it has no people yet", _of(team.name), move=True
    )


@login_required
@require_safe
def one(request: UserRequest, team: str) -> HttpResponse:
    """The people of one team."""
    found = team_for(request.user, team)
    context = {
        "section": "teams",
        "team": found,
        "members": members.members_of(found),
        "may_manage": allows(request.user, found, Role.ADMIN),
        "roles": Role.choices,
        "abilities": ABILITIES,
    }
    return render(request, "teams/one.html", context)


@login_required
@require_POST
def set_role(request: UserRequest, team: str) -> HttpResponse:
    """Take a person in, or change their role."""
    found = team_for(request.user, team)
    asked = checked(MemberForm(request.POST))
    before = members.role_of(found, asked["user"])
    after = members.set_role(found, request.user, asked["user"], Role(asked["role"]))
    told = members.gains_and_losses(before, Role(after.role))
    sentence = f"{after.user.username} is {after.role} of {team} now: {told}"
    return said(request, sentence, _of(team), move=True)


@login_required
@require_POST
def remove(request: UserRequest, team: str, user: str) -> HttpResponse:
    """End a person's part in a team."""
    members.remove_member(team_for(request.user, team), request.user, user)
    return said(request, f"{user} is not in {team} any more", _of(team), move=True)


def _of(team: str) -> str:
    return reverse("dashboard:team", args=[team])
