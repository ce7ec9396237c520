"""What a view gets: a request of somebody who is logged in."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import User
from django.http import HttpRequest

MAX_WORDS = 200


class UserRequest(HttpRequest):
    """A request behind `login_required`."""

    user: User


def chosen(request: HttpRequest, name: str, choices: Collection[str], otherwise: str) -> str:
    """One of the choices: what the address says, if it is one."""
    given = request.GET.get(name, "")
    return given if given in choices else otherwise


def words_of(request: HttpRequest, name: str) -> str:
    """Words of a filter, as far as a database can look for them."""
    return request.GET.get(name, "").replace("\0", "")[:MAX_WORDS].strip()
