"""Who asks the API: the owner of a bearer token, or the person of a session.

    Authorization: Bearer hw_…    a token of the page API tokens; nothing else is looked at
    the cookie of a session       needs the CSRF token too, in X-CSRFToken, for all but reading

Errors   401 without either, or with a token that opens nothing; 403 without the CSRF token.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from ninja.security import HttpBearer, SessionAuth

from controlplane.access.tokens import redeem_token


class ApiRequest(HttpRequest):
    """A request of somebody who is known."""

    auth: User


class TokenAuth(HttpBearer):
    """The owner of a token, with no more than its grant."""

    @sensitive_variables("token")
    def authenticate(self, request: HttpRequest, token: str) -> User:
        """Raise Refused (401) for a token that opens nothing: a session does not make up for it."""
        return redeem_token(token.strip(), timezone.now())


class PersonAuth(SessionAuth):
    """Somebody who is signed in with a browser."""

    def __call__(self, request: HttpRequest) -> User | None:
        """None without a session: then nothing could be forged, and 401 is the better answer."""
        if not request.user.is_authenticated:
            return None
        found: User | None = super().__call__(request)
        return found


AUTH = [TokenAuth(), PersonAuth()]
