"""People of the platform: who may log in at all. Platform admins only.

Guarantee   One active platform admin stays, or nobody could let anybody in.
Errors      Refused, with one sentence.
"""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Prefetch, QuerySet

from controlplane.access.errors import conflict, invalid
from controlplane.access.logins import issue_login
from controlplane.access.lookup import require_platform_admin
from controlplane.access.models import Membership
from controlplane.audit.record import record

MAX_NAME = 150
RESERVED = frozenset({"add", "platform"})
"""A page has the first as its address, the audit log means the second."""


def people(actor: User) -> QuerySet[User]:
    """Everybody, with their teams."""
    require_platform_admin(actor)
    teams = Membership.objects.select_related("team").order_by("team__name")
    return User.objects.order_by("-is_active", "username").prefetch_related(
        Prefetch("memberships", teams), "identities"
    )


@transaction.atomic
def add_person(actor: User, name: str) -> User:
    """Somebody who may log in, by a link at first; they are in no team yet."""
    require_platform_admin(actor)
    chosen = _checked(name)
    try:
        with transaction.atomic():
            person = User.objects.create_user(chosen)  # without a password: none fits
    except IntegrityError:
        msg = f"user name {chosen} is taken: choose another"
        raise invalid(msg, "name") from None
    record(actor, "user.add", f"user {chosen}")
    return person


@transaction.atomic
def set_active(person: User, actor: User, *, active: bool) -> None:
    """Lock somebody out, at once and everywhere, or let them in again."""
    require_platform_admin(actor)
    _check_not_last(person, keeps=active)
    if not User.objects.filter(pk=person.pk, is_active=not active).update(is_active=active):
        state = "may log in" if active else "is locked out"
        msg = f"user {person.username} {state} already"
        raise conflict(msg)
    action = "user.enable" if active else "user.disable"
    before, after = {"active": not active}, {"active": active}
    record(actor, action, f"user {person.username}", before=before, after=after)


@transaction.atomic
def set_platform_admin(person: User, actor: User, *, admin: bool) -> None:
    """Make somebody a platform admin, or end that."""
    require_platform_admin(actor)
    _check_not_last(person, keeps=admin)
    if not User.objects.filter(pk=person.pk, is_superuser=not admin).update(is_superuser=admin):
        state = "is a platform admin" if admin else "is no platform admin"
        msg = f"user {person.username} {state} already"
        raise conflict(msg)
    before, after = {"platform_admin": not admin}, {"platform_admin": admin}
    record(actor, "user.admin", f"user {person.username}", before=before, after=after)


@transaction.atomic
def make_login(person: User, actor: User, now: datetime) -> str:
    """A token for `/login/once/<token>/`, to be given to the person."""
    require_platform_admin(actor)
    if not person.is_active:
        msg = f"user {person.username} is locked out: let them in first"
        raise conflict(msg)
    record(actor, "login.issue", f"user {person.username}")
    return issue_login(person, now)


def _checked(name: str) -> str:
    chosen = name.strip()
    try:
        UnicodeUsernameValidator()(chosen)
    except ValidationError:
        chosen = ""
    if chosen in RESERVED:
        msg = f"user name {chosen} is reserved: choose another"
        raise invalid(msg, "name")
    if not chosen or len(chosen) > MAX_NAME:
        msg = f"user name {name[:40]!r} cannot be used: use letters, digits and @ . + - _"
        raise invalid(msg, "name")
    return chosen


def _check_not_last(person: User, *, keeps: bool) -> None:
    """Refuse to end the last one who could undo it."""
    admins = User.objects.select_for_update().filter(is_superuser=True, is_active=True)
    if not keeps and {admin.pk for admin in admins} == {person.pk}:
        msg = f"{person.username} is the last platform admin: make another one first"
        raise conflict(msg)
