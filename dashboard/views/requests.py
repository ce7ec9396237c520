"""What a view gets: a request of somebody who is logged in."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest


class UserRequest(HttpRequest):
    """A request behind `login_required`."""

    user: User
