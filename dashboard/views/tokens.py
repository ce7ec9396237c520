"""API tokens: keys for programs, told once."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import (
    api_token_for,
    is_platform_admin,
    team_for,
    visible_teams,
)
from controlplane.access.models import ApiToken
from controlplane.access.tokens import MAX_DAYS, issue_token, revoke_token, tokens_of
from dashboard.access_forms import TokenForm, TypedForm
from dashboard.answers import checked, said
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """The tokens of this person; a platform admin sees all."""
    context = {
        "section": "tokens",
        "lines": tokens_of(request.user, timezone.now()),
        "all": is_platform_admin(request.user),
        "teams": visible_teams(request.user).order_by("name"),
        "scopes": ApiToken.Scope.choices,
        "max_days": MAX_DAYS,
    }
    return render(request, "tokens/list.html", context)


@never_cache
@login_required
@require_POST
def issue(request: UserRequest) -> HttpResponse:
    """A new token; its text is on this page and never again."""
    asked = checked(TokenForm(request.POST))
    team = team_for(request.user, asked["team"]) if asked["team"] else None
    token, text = issue_token(
        request.user, asked["name"], asked["scope"], asked["days"], team, timezone.now()
    )
    context = {"section": "tokens", "token": token, "text": text}
    return render(request, "tokens/issued.html", context)


@login_required
@require_POST
def revoke(request: UserRequest, token_id: int) -> HttpResponse:
    """End a token."""
    token = api_token_for(request.user, token_id)
    checked(TypedForm(request.POST, name=token.name))
    revoke_token(token, request.user, timezone.now())
    sentence = f"Token {token.name} is revoked: programs that use it are refused"
    return said(request, sentence, reverse("dashboard:tokens"), move=True)
