"""Teams, people, tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.contrib.auth.models import User
from ninja import Field, Schema

from controlplane.access.models import ApiToken, Membership, Role

RoleName = Literal["viewer", "operator", "admin"]


class TeamOut(Schema):
    """A team and its people."""

    name: str
    role: str | None = Field(description="yours")
    jobs: int
    members: dict[str, str] = Field(description="user to role")


class NameIn(Schema):
    """The name of something new."""

    name: str = Field(max_length=150)


class RoleIn(Schema):
    """A role in a team."""

    role: RoleName


class MemberOut(Schema):
    """One person in a team."""

    user: str
    role: Role

    @staticmethod
    def resolve_user(member: Membership) -> str:
        """Their name."""
        return member.user.get_username()


class UserOut(Schema):
    """Somebody who may log in."""

    name: str = Field(alias="username")
    active: bool = Field(alias="is_active")
    platform_admin: bool = Field(alias="is_superuser")
    last_login: datetime | None
    teams: dict[str, str]

    @staticmethod
    def resolve_teams(user: User) -> dict[str, str]:
        """Name to role."""
        return {held.team.name: held.role for held in user.memberships.all()}


class UserChange(Schema):
    """What is to become of somebody; what is left out stays."""

    active: bool | None = None
    platform_admin: bool | None = None


class LoginLink(Schema):
    """A link that logs one person in, once."""

    path: str = Field(description="below the platform's address")
    minutes: int = Field(description="how long it lasts")


class TokenIn(Schema):
    """A token to be made."""

    name: str = Field(max_length=64)
    scope: Literal["read", "operate", "admin"]
    days: int = Field(description="how long it lasts, 1 to 366")
    team: str = Field("", description="the only team; none: every team of yours")


class TokenOut(Schema):
    """A token, without its text."""

    id: int
    name: str
    owner: str
    hint: str
    scope: str
    team: str | None
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None

    @staticmethod
    def resolve_owner(token: ApiToken) -> str:
        """Their name."""
        return token.owner.get_username()

    @staticmethod
    def resolve_team(token: ApiToken) -> str | None:
        """Its name."""
        return token.team.name if token.team else None


class TokenIssued(Schema):
    """A new token; its text is told only here."""

    token: TokenOut
    text: str
