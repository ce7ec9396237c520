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


def check_may_try(name: str, address: str, now: datetime) -> None:
    """Refuse (429) a login after too many that failed."""
    limits = _limits(name, address)
    found = LoginFailures.objects.filter(key__in=limits, since__gt=now - WINDOW)
    for one in found.order_by("-since"):
        if one.failures >= limits[one.key]:
            minutes = ceil((one.since + WINDOW - now) / timedelta(minutes=1))
            msg = (
                f"too many logins failed: {one.failures} in the last quarter of an hour; "
                f"wait {minutes} min, or ask for a one-time login"
            )
            raise Refused(429, "throttled", msg)


def count_failure(name: str, address: str, now: datetime) -> None:
    """Remember a login that failed; old ones are forgotten."""
    LoginFailures.objects.filter(since__lte=now - WINDOW).delete()
    for key in _limits(name, address):
        row, _ = LoginFailures.objects.get_or_create(key=key, defaults={"since": now})
        LoginFailures.objects.filter(pk=row.pk).update(failures=F("failures") + 1)


def forget_failures(name: str, address: str) -> None:
    """The person got in: what they mistyped before counts no more."""
    LoginFailures.objects.filter(key=_key(name, address)).delete()


def _limits(name: str, address: str) -> dict[str, int]:
    """How often each key may fail."""
    return {_key(name, address): PER_NAME, _key("", address): PER_ADDRESS}


def _key(name: str, address: str) -> str:
    return hashlib.sha256(f"{name.strip().casefold()}\n{address}".encode()).hexdigest()
