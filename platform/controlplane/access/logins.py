"""One-time logins: a link that logs one person in, once, within a quarter of an hour.

Guarantee   Of two requests with the same token at most one gets in: it is one compare-and-set.
            Only the token's SHA-256 is kept, so nobody who reads the database can log in with it.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction

from controlplane.access.errors import Refused
from controlplane.access.models import OneTimeLogin
from controlplane.audit.record import record

VALID_FOR = timedelta(minutes=15)


def issue_login(user: User, now: datetime) -> str:
    """A fresh token for `user`; the address is `/login/once/<token>/`."""
    token = secrets.token_urlsafe(32)
    OneTimeLogin.objects.filter(expires_at__lt=now - timedelta(days=1)).delete()
    OneTimeLogin.objects.create(token_sha256=_hash(token), user=user, expires_at=now + VALID_FOR)
    return token


@transaction.atomic
def redeem_login(token: str, now: datetime) -> User:
    """The person that the token logs in; the caller then calls `django.contrib.auth.login`.

    Raises Refused (403) when it is unknown, used or expired: which of these is not told.
    """
    unused = OneTimeLogin.objects.filter(
        token_sha256=_hash(token), used_at=None, expires_at__gt=now, user__is_active=True
    )
    found = unused.select_related("user").first()
    if found is None or not unused.filter(pk=found.pk).update(used_at=now):
        msg = (
            "this login link was used already or has expired; "
            "make a new one with `manage.py one_time_login`"
        )
        raise Refused(403, "login_link", msg)
    record(found.user, "login.once", f"user {found.user.username}")
    return found.user


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
