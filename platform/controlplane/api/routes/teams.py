"""Teams, and who is in them."""

from __future__ import annotations

from typing import Any

from ninja import Router, Status

from controlplane.access import members
from controlplane.access.lookup import team_for
from controlplane.access.models import Membership, Role
from controlplane.api.auth import ApiRequest
from controlplane.api.schema.access import MemberOut, NameIn, RoleIn, TeamOut

router = Router(tags=["teams"])


@router.get("teams", response=list[TeamOut], summary="List teams")
def list_teams(request: ApiRequest) -> list[dict[str, Any]]:
    """Those that you are in, with their people."""
    return [
        {
            "name": row.team.name,
            "role": row.role,
            "jobs": row.jobs,
            "members": {one.user.get_username(): one.role for one in row.members},
        }
        for row in members.team_rows(request.auth)
    ]


@router.post("teams", response={201: TeamOut}, summary="Add a team")
def add(request: ApiRequest, body: NameIn) -> Status[dict[str, Any]]:
    """A team without people. Platform admin."""
    team = members.create_team(request.auth, body.name)
    return Status(201, {"name": team.name, "role": Role.ADMIN, "jobs": 0, "members": {}})


@router.put("teams/{team}/members/{user}", response=MemberOut, summary="Give a role")
def set_role(request: ApiRequest, team: str, user: str, body: RoleIn) -> Membership:
    """Take somebody in, or give them another role. Admin."""
    return members.set_role(team_for(request.auth, team), request.auth, user, Role(body.role))


@router.delete("teams/{team}/members/{user}", response={204: None}, summary="Remove a member")
def remove(request: ApiRequest, team: str, user: str) -> Status[None]:
    """End somebody's part in the team. Admin."""
    members.remove_member(team_for(request.auth, team), request.auth, user)
    return Status(204, None)
