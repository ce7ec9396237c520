"""Who asks, what they look for, and the platform that answers."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import Query, Router

from controlplane.access.grants import grant_of
from controlplane.access.lookup import is_platform_admin, require_platform_admin, roles_of
from controlplane.api.auth import ApiRequest
from controlplane.api.schema.others import JumpOut, Me, PlatformOut
from controlplane.configuration import parts, variables
from controlplane.jobs.jump import Jump, jumps

router = Router(tags=["who"])
Text = Annotated[str, Query(max_length=100)]


@router.get("me", response=Me, summary="Who asks")
def me(request: ApiRequest) -> Me:
    """The person, and their role in each team."""
    user = request.auth
    return Me(
        user=user.get_username(),
        platform_admin=is_platform_admin(user),
        teams={team: str(role) for team, role in roles_of(user).items()},
        token=grant_of(user).token or None,
    )


@router.get("search", response=list[JumpOut], summary="Search")
def search(request: ApiRequest, q: Text = "") -> list[Jump]:
    """Jobs, operators, savepoints and replays whose name has this text in it; a few of each."""
    return jumps(request.auth, q)


@router.get("platform", response=PlatformOut, summary="The platform")
def platform(request: ApiRequest) -> dict[str, Any]:
    """Which variables configure it, and what it runs on. Platform admin."""
    require_platform_admin(request.auth)
    return {"variables": variables(), "parts": parts()}
