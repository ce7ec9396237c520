"""From a person of the provider to a user here.

Guarantee   Matched by issuer and subject, and by nothing else: whoever takes over a name or a mail
            address at the provider does not become somebody else here.
"""

from __future__ import annotations

import re
from itertools import count

from django.contrib.auth.models import User
from django.db import transaction

from controlplane.access.errors import Refused
from controlplane.access.models import Identity
from controlplane.access.oidc import Subject
from controlplane.access.people import RESERVED
from controlplane.audit.record import record

_FOREIGN = re.compile(r"[^\w.@+-]+")


@transaction.atomic
def user_of(subject: Subject) -> User:
    """The user, made at the first login, in no team yet. Raises Refused for one locked out."""
    known = Identity.objects.select_related("user").filter(
        issuer=subject.issuer, subject=subject.subject
    )
    found = known.first()
    user = found.user if found else _make(subject)
    if not user.is_active:
        msg = f"user {user.username} may not log in any more: ask a platform admin"
        raise Refused(403, "locked_out", msg)
    record(user, "login.sso", f"user {user.username}", after={"issuer": subject.issuer})
    return user


def _make(subject: Subject) -> User:
    user = User.objects.create_user(_free_name(subject.name))
    Identity.objects.create(user=user, issuer=subject.issuer, subject=subject.subject)
    after = {"issuer": subject.issuer, "subject": subject.subject}
    record(None, "user.add", f"user {user.username}", reason="first single sign-on", after=after)
    return user


def _free_name(wanted: str) -> str:
    """The wanted name, or with the first number that is free: it may be somebody else's."""
    base = _FOREIGN.sub("-", wanted).strip("-")[:100] or "person"
    numbered = (base if number == 1 else f"{base}-{number}" for number in count(1))
    return next(
        name
        for name in numbered
        if name not in RESERVED and not User.objects.filter(username=name).exists()
    )
