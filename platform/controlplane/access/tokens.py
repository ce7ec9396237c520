"""API tokens: issued once, kept as a hash, used until they expire or are revoked.

    hw_3vZ…   said once, to its owner; the database has SHA-256 of it and its first letters

Errors   Refused: 400 for a form that makes no sense, 401 for a token that opens nothing: which of
         unknown, expired, revoked or of somebody locked out is told only to whom has the token.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from controlplane.access.errors import Refused, conflict, invalid
from controlplane.access.grants import ROLE_OF_SCOPE, Grant, grant_of, limit
from controlplane.access.lookup import RANK, is_platform_admin
from controlplane.access.models import ApiToken, Role, Team
from controlplane.audit.record import record

PREFIX = "hw_"
MAX_DAYS = 366
MAX_TOKENS = 50
"""Of one person, unused ones not counted: nobody can keep track of more."""
USED_EVERY = timedelta(minutes=1)
"""`last_used_at` is written no more often: else each request would wait for a write."""


@transaction.atomic
def issue_token(
    owner: User, name: str, scope: str, days: int, team: Team | None, now: datetime
) -> tuple[ApiToken, str]:
    """A new token and its text, which nobody can be told again."""
    _check(owner, name, scope, days, team, now)
    text = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        name=name.strip(),
        owner=owner,
        token_sha256=_hash(text),
        hint=text[:8],
        scope=scope,
        team=team,
        expires_at=now + timedelta(days=days),
    )
    record(owner, "token.issue", str(token), team=team, after=_told(token))
    return token, text


@transaction.atomic
def revoke_token(token: ApiToken, actor: User, now: datetime) -> None:
    """End a token; programs that use it are refused from now on."""
    if not ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
        msg = f"{token} was revoked already"
        raise conflict(msg)
    record(actor, "token.revoke", str(token), team=token.team, before=_told(token))


@dataclass(frozen=True, slots=True)
class TokenLine:
    """One token in the list."""

    token: ApiToken
    state: str
    """usable, expired, revoked or locked (its owner may not log in)."""


def tokens_of(user: User, now: datetime) -> tuple[TokenLine, ...]:
    """The tokens of this person, or of everybody for a platform admin; usable ones first."""
    found = ApiToken.objects.select_related("owner", "team")
    mine = found if is_platform_admin(user) else found.filter(owner=user)
    lines = [TokenLine(token, _state(token, now)) for token in mine[:500]]
    return tuple(sorted(lines, key=lambda line: line.state != "usable"))


def _state(token: ApiToken, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at <= now:
        return "expired"
    return "usable" if token.owner.is_active else "locked"


def redeem_token(text: str, now: datetime) -> User:
    """The owner of a token, with no more than its grant. Raises Refused (401)."""
    token = ApiToken.objects.select_related("owner").filter(token_sha256=_hash(text)).first()
    if token is None:
        msg = "is not known here: make one on the page API tokens"
        raise _unusable(msg)
    if token.revoked_at is not None:
        msg = f"{token.name} was revoked on {token.revoked_at:%d %b %Y}: use another"
        raise _unusable(msg)
    if token.expires_at <= now:
        msg = f"{token.name} expired on {token.expires_at:%d %b %Y}: make a new one"
        raise _unusable(msg)
    if not token.owner.is_active:
        msg = f"{token.name} belongs to {token.owner}, who may not log in any more"
        raise _unusable(msg)
    _note_use(token, now)
    role = ROLE_OF_SCOPE[ApiToken.Scope(token.scope)]
    return limit(token.owner, Grant(role, token.team_id, token.name))


def _note_use(token: ApiToken, now: datetime) -> None:
    long_ago = Q(last_used_at=None) | Q(last_used_at__lte=now - USED_EVERY)
    ApiToken.objects.filter(long_ago, pk=token.pk).update(last_used_at=now)


def _check(owner: User, name: str, scope: str, days: int, team: Team | None, now: datetime) -> None:
    if not 0 < len(name.strip()) <= 64:
        msg = "a token needs a name of 1 to 64 characters: say what it is for"
        raise invalid(msg, "name")
    if scope not in ApiToken.Scope.values:
        msg = f"scope must be one of {', '.join(ApiToken.Scope.values)}: got {scope[:20]!r}"
        raise invalid(msg, "scope")
    if not 1 <= days <= MAX_DAYS:
        msg = f"a token lasts 1 to {MAX_DAYS} days: got {days}"
        raise invalid(msg, "days")
    _check_within(grant_of(owner), ROLE_OF_SCOPE[ApiToken.Scope(scope)], team)
    usable = ApiToken.objects.filter(owner=owner, revoked_at=None, expires_at__gt=now)
    if usable.count() >= MAX_TOKENS:
        msg = f"{owner} has {MAX_TOKENS} tokens already: revoke one first"
        raise conflict(msg)


def _check_within(grant: Grant, role: Role, team: Team | None) -> None:
    """A token cannot make one that may do more than itself."""
    wider = grant.team_id is not None and (team is None or team.pk != grant.team_id)
    if RANK[role] > RANK[grant.highest] or wider:
        msg = f"token {grant.token} cannot issue one that may do more than itself"
        raise Refused(403, "role", msg)


def _told(token: ApiToken) -> dict[str, str]:
    """What the audit log keeps of a token."""
    team = token.team.name if token.team else "all of the owner's"
    return {
        "name": token.name,
        "scope": token.scope,
        "team": team,
        "expires": f"{token.expires_at:%Y-%m-%d}",
    }


def _unusable(why: str) -> Refused:
    return Refused(401, "token", f"the token {why}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
