"""Who asks."""

from __future__ import annotations

from ninja import Router

from controlplane.access.grants import grant_of
from controlplane.access.lookup import is_platform_admin, roles_of
from controlplane.api.auth import ApiRequest
from controlplane.api.schema.others import Me

router = Router(tags=["who"])


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
