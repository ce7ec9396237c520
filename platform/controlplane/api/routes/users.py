"""People of the platform. For platform admins."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from ninja import Router, Status

from controlplane.access import people
from controlplane.access.logins import VALID_FOR
from controlplane.access.lookup import person_for
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.access import LoginLink, NameIn, UserChange, UserOut

router = Router(tags=["users"])


@router.get("users", response=Page[UserOut], summary="List users")
def list_users(
    request: ApiRequest, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """Everybody, by name. Platform admin."""
    return page(people.people(request.auth), list, limit, cursor, "username")


@router.post("users", response={201: UserOut}, summary="Add a user")
def add(request: ApiRequest, body: NameIn) -> Status[User]:
    """Somebody who may log in by a link. Platform admin."""
    return Status(201, people.add_person(request.auth, body.name))


@router.patch("users/{user}", response=UserOut, summary="Change a user")
def change(request: ApiRequest, user: str, body: UserChange) -> User:
    """Lock out, let in, make a platform admin or end that. Platform admin."""
    person = person_for(request.auth, user)
    with transaction.atomic():
        if body.active is not None:
            people.set_active(person, request.auth, active=body.active)
        if body.platform_admin is not None:
            people.set_platform_admin(person, request.auth, admin=body.platform_admin)
    return person_for(request.auth, user)


@router.post("users/{user}/login-link", response={201: LoginLink}, summary="Make a login link")
def login_link(request: ApiRequest, user: str) -> Status[LoginLink]:
    """For the person, to log in once. Platform admin."""
    token = people.make_login(person_for(request.auth, user), request.auth, timezone.now())
    minutes = int(VALID_FOR.total_seconds() // 60)
    return Status(201, LoginLink(path=f"/login/once/{token}/", minutes=minutes))
