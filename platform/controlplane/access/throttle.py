"""How often a login may fail: five times for a name at an address, thirty times for an address.

Guarantee   Counted in the database: several web processes count together, and a restart forgets
            nothing. Who waits a quarter of an hour after the first failure begins anew.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from math import ceil

from django.db.models import F

from controlplane.access.errors import Refused
from controlplane.access.models import LoginFailures

WINDOW = timedelta(minutes=15)
PER_NAME = 5
"""A person mistypes twice or three times; a list of common passwords has thousands."""
PER_ADDRESS = 30
"""Of all names together: an office may share one address."""


def begin_login(name: str, address: str, now: datetime) -> None:
    """Count a login as failed before it is tried. Raises Refused (429) after too many.

    Before, not after: many that are tried at the same time count at once, however long a password
    takes to be checked.
    """
    LoginFailures.objects.filter(since__lte=now - WINDOW).delete()
    limits = _limits(name, address)
    for one in LoginFailures.objects.filter(key__in=limits).order_by("-since"):
        if one.failures >= limits[one.key]:
            raise _too_many(one, now)
    for key in limits:
        row, _ = LoginFailures.objects.get_or_create(key=key, defaults={"since": now})
        LoginFailures.objects.filter(pk=row.pk).update(failures=F("failures") + 1)


def end_login(name: str, address: str) -> None:
    """The person got in: what they mistyped before counts no more, nor does this login."""
    LoginFailures.objects.filter(key=_key(name, address)).delete()
    of_address = LoginFailures.objects.filter(key=_key("", address), failures__gt=0)
    of_address.update(failures=F("failures") - 1)


def _too_many(found: LoginFailures, now: datetime) -> Refused:
    minutes = ceil((found.since + WINDOW - now) / timedelta(minutes=1))
    msg = (
        f"too many logins failed: {found.failures} in the last quarter of an hour; "
        f"wait {minutes} min, or ask for a one-time login"
    )
    return Refused(429, "throttled", msg)


def _limits(name: str, address: str) -> dict[str, int]:
    """How often each key may fail."""
    return {_key(name, address): PER_NAME, _key("", address): PER_ADDRESS}


def _key(name: str, address: str) -> str:
    return hashlib.sha256(f"{name.strip().casefold()}\n{address}".encode()).hexdigest()
