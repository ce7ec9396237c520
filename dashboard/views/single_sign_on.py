"""Logging in with a provider of single sign-on: there, and back."""

from __future__ import annotations

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_safe

from controlplane.access import oidc
from controlplane.access.identities import user_of

KEPT = "single_sign_on"
"""Under this name the session keeps what a login needs to end."""


@never_cache
@require_safe
def begin(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider."""
    back = request.build_absolute_uri(reverse("dashboard:sso_back"))
    then = request.GET.get("next", "")
    provider = oidc.Provider.of_settings()
    address, pending = oidc.begin(provider, back, then, timezone.now())
    request.session[KEPT] = pending.as_json()
    return redirect(address)


@never_cache
@sensitive_variables()
@require_safe
def back(request: HttpRequest) -> HttpResponse:
    """Take the person that the provider sends back; its answer serves once."""
    kept = request.session.pop(KEPT, None)
    pending = oidc.Pending(**kept) if kept else None
    subject = oidc.finish(oidc.Provider.of_settings(), pending, request.GET.dict(), timezone.now())
    login(request, user_of(subject), "django.contrib.auth.backends.ModelBackend")
    then = pending.next if pending else ""
    if url_has_allowed_host_and_scheme(then, {request.get_host()}, request.is_secure()):
        return redirect(then)
    return redirect("dashboard:fleet")
