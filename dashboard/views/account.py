"""Logging in: by a one-time link, or with a password."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_safe

from controlplane.access.errors import Refused
from controlplane.access.logins import redeem_login
from controlplane.access.throttle import begin_login, end_login
from controlplane.audit.record import record
from dashboard.templatetags.hw import sentence

WRONG = "That name and password do not fit together."


class LoginForm(AuthenticationForm):
    """Name and password, which may be wrong only so often."""

    error_messages = {"invalid_login": WRONG, "inactive": WRONG}

    def clean(self) -> dict[str, object]:
        """Try to log in, and count it."""
        name, address = self._who()
        try:
            begin_login(name, address, timezone.now())
        except Refused as refused:
            raise ValidationError(sentence(refused.message), "throttled") from None
        cleaned = super().clean()
        end_login(name, address)
        return cleaned

    def _who(self) -> tuple[str, str]:
        assert self.request is not None
        return self.data.get("username", ""), self.request.META.get("REMOTE_ADDR", "")


class Login(LoginView):
    """The login page; who is logged in goes on."""

    template_name = "account/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        """The page offers single sign-on when it is set up."""
        name = settings.HEADWATER_OIDC_NAME if settings.HEADWATER_OIDC_ISSUER else ""
        return {**super().get_context_data(**kwargs), "sso_name": name}

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Let the person in, and write it down."""
        person = form.get_user()
        record(person, "login.password", f"user {person.get_username()}")
        return super().form_valid(form)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """The page again; 429 while nothing is tried at all."""
        response = super().form_invalid(form)
        if form.has_error("__all__", "throttled"):
            response.status_code = 429
        return response


@never_cache
@sensitive_variables("token")
@require_safe
def once(request: HttpRequest, token: str) -> HttpResponse:
    """Redeem a link; who is logged in already keeps it for somebody else."""
    if not request.user.is_authenticated:
        user = redeem_login(token, timezone.now())
        login(request, user, "django.contrib.auth.backends.ModelBackend")
    return redirect("dashboard:fleet")
