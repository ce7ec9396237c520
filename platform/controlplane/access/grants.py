"""What a token takes away from its owner: everything above its scope, and every other team.

    user = User.objects.get(…)          no grant: all that the roles of the person give
    limit(user, Grant(Role.VIEWER, 7))  the same person, who may only look, and only at team 7

The grant travels with the object, so that whoever is handed the user asks the same functions of
`lookup.py` and gets the narrower answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User

from controlplane.access.models import ApiToken, Role

_ATTRIBUTE = "_headwater_grant"

ROLE_OF_SCOPE = {
    ApiToken.Scope.READ: Role.VIEWER,
    ApiToken.Scope.OPERATE: Role.OPERATOR,
    ApiToken.Scope.ADMIN: Role.ADMIN,
}


@dataclass(frozen=True, slots=True)
class Grant:
    """The most that a person may do by this way in."""

    highest: Role = Role.ADMIN
    team_id: int | None = None
    """The only team; None: every team of the person."""
    token: str = ""
    """Name of the token; empty for a person who signed in."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is taken away."""
        return self.highest == Role.ADMIN and self.team_id is None


WHOLE = Grant()


def limit(user: User, grant: Grant) -> User:
    """The person with no more than `grant`."""
    user.__dict__[_ATTRIBUTE] = grant
    return user


def grant_of(user: User | AnonymousUser) -> Grant:
    """What was taken away; nothing for a person who signed in."""
    # `request.user` is a lazy object: it passes attributes on, but not its __dict__.
    found: Grant = getattr(user, _ATTRIBUTE, WHOLE)
    return found
