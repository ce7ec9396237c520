"""Logging in: by a one-time link, or with a password."""

from __future__ import annotations

from django.contrib.auth import login
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_safe

from controlplane.access.logins import redeem_login


class Login(LoginView):
    """The login page; who is logged in goes on."""

    template_name = "account/login.html"
    redirect_authenticated_user = True


@never_cache
@sensitive_variables("token")
@require_safe
def once(request: HttpRequest, token: str) -> HttpResponse:
    """Redeem a link; who is logged in already keeps it for somebody else."""
    if not request.user.is_authenticated:
        user = redeem_login(token, timezone.now())
        login(request, user, "django.contrib.auth.backends.ModelBackend")
    return redirect("dashboard:fleet")
