"""What every request passes: an id, a content security policy, and one place that renders refusals.

Errors   `Refused`, raised anywhere below a view, becomes its status and one sentence: the template
         `refused.html` (`_refused.html` for htmx) where there is one, JSON where that is asked for.
"""

from __future__ import annotations

import re
import secrets
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string

from controlplane.access.errors import Refused
from controlplane.audit import context as audit_context

REQUEST_ID = re.compile(r"[A-Za-z0-9-]{8,64}")

Handler = Callable[[HttpRequest], HttpResponse]


class RequestIdMiddleware:
    """Give each request an id, for the audit log and for the page of a fault."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Keep the caller's id when it looks like one."""
        given = request.headers.get("X-Request-Id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        request.META["HEADWATER_REQUEST_ID"] = request_id
        with audit_context.request_id(request_id):
            response = self.get_response(request)
        response["X-Request-Id"] = request_id
        return response


class ContentSecurityPolicyMiddleware:
    """Let a page load nothing but its own files, and run no script without the nonce."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Make the nonce before the page, the header after it."""
        nonce = secrets.token_urlsafe(16)
        request.META["HEADWATER_CSP_NONCE"] = nonce
        response = self.get_response(request)
        response.setdefault("Content-Security-Policy", policy(nonce))
        return response


def policy(nonce: str) -> str:
    """The policy of every page: no inline style either; scripts set widths through the CSSOM."""
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' 'nonce-{nonce}'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    )


def csp_nonce(request: HttpRequest) -> dict[str, str]:
    """Context processor: `csp_nonce` and `request_id` in every template."""
    return {
        "csp_nonce": request.META.get("HEADWATER_CSP_NONCE", ""),
        "request_id": request.META.get("HEADWATER_REQUEST_ID", ""),
    }


class RefusedMiddleware:
    """Render a refusal, so that no view needs a try."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer a refusal; leave every other error to Django."""
        if not isinstance(error, Refused):
            return None
        if request.get_preferred_type(["text/html", "application/json"]) == "application/json":
            return JsonResponse(
                {"error": error.message, "code": error.code, "fields": error.fields},
                status=error.status,
            )
        response = _page(request, error)
        response["X-Refused"] = error.code
        return response


def _page(request: HttpRequest, error: Refused) -> HttpResponse:
    name = "_refused.html" if request.headers.get("HX-Request") else "refused.html"
    try:
        text = render_to_string(name, {"refused": error}, request=request)
    except TemplateDoesNotExist:
        return HttpResponse(error.message, status=error.status, content_type="text/plain")
    return HttpResponse(text, status=error.status)
