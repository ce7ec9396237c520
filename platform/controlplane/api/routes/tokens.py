"""API tokens; a token makes none that may do more than itself."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from ninja import Router, Status

from controlplane.access.lookup import api_token_for, team_for
from controlplane.access.models import ApiToken
from controlplane.access.tokens import issue_token, revoke_token, tokens_of
from controlplane.api.auth import ApiRequest
from controlplane.api.schema.access import TokenIn, TokenIssued, TokenOut

router = Router(tags=["tokens"])


@router.get("tokens", response=list[TokenOut], summary="List tokens")
def list_tokens(request: ApiRequest) -> list[ApiToken]:
    """Yours, usable ones first; a platform admin sees all."""
    return [line.token for line in tokens_of(request.auth, timezone.now())]


@router.post("tokens", response={201: TokenIssued}, summary="Make a token")
def issue(request: ApiRequest, body: TokenIn) -> Status[dict[str, Any]]:
    """The answer holds its text, which is told nowhere else."""
    team = team_for(request.auth, body.team) if body.team else None
    token, text = issue_token(request.auth, body.name, body.scope, body.days, team, timezone.now())
    return Status(201, {"token": token, "text": text})


@router.delete("tokens/{token_id}", response={204: None}, summary="Revoke a token")
def revoke(request: ApiRequest, token_id: int) -> Status[None]:
    """Programs that use it are refused from now on."""
    revoke_token(api_token_for(request.auth, token_id), request.auth, timezone.now())
    return Status(204, None)
