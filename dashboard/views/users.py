"""People of the platform: who may log in at all. For platform admins."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from controlplane.access import people
from controlplane.access.logins import VALID_FOR
from controlplane.access.lookup import person_for
from dashboard.access_forms import NameForm, PersonForm
from dashboard.answers import checked, said
from dashboard.views.requests import UserRequest

TOLD = {
    "disable": "is locked out, at once and everywhere",
    "enable": "may log in again",
    "admin": "is a platform admin now",
    "no_admin": "is no platform admin any more",
}


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """Everybody, with their teams."""
    context = {"section": "users", "people": people.people(request.user)}
    return render(request, "users/list.html", context)


@login_required
@require_POST
def add(request: UserRequest) -> HttpResponse:
    """Somebody new."""
    person = people.add_person(request.user, checked(NameForm(request.POST))["name"])
    sentence = f"{person.username} is here; make a login link, and add them to a team"
    return said(request, sentence, reverse("dashboard:users"), move=True)


@login_required
@require_POST
def change(request: UserRequest, user: str) -> HttpResponse:
    """Lock out, let in, make a platform admin, or end that."""
    person = person_for(request.user, user)
    to = checked(PersonForm(request.POST))["to"]
    if to in {"disable", "enable"}:
        people.set_active(person, request.user, active=to == "enable")
    else:
        people.set_platform_admin(person, request.user, admin=to == "admin")
    return said(request, f"{user} {TOLD[to]}", reverse("dashboard:users"), move=True)


@never_cache
@login_required
@require_POST
def login_link(request: UserRequest, user: str) -> HttpResponse:
    """A one-time login, shown once."""
    person = person_for(request.user, user)
    token = people.make_login(person, request.user, timezone.now())
    address = request.build_absolute_uri(reverse("dashboard:login_once", args=[token]))
    minutes = VALID_FOR.total_seconds() // 60
    context = {"section": "users", "person": person, "address": address, "minutes": minutes}
    return render(request, "users/login_link.html", context)
