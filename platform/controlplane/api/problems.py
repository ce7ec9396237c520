"""Errors of the API as problem details.

    {"type": "urn:headwater:problem:busy", "title": "Conflict", "status": 409,
     "detail": "job flights is busy: …", "code": "busy", "fields": {…}, "request_id": "…"}

Source   RFC 9457, Problem Details for HTTP APIs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from controlplane.access.errors import Refused

log = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"


def problem(request: HttpRequest, refused: Refused) -> HttpResponse:
    """A refusal as the API tells it."""
    body: dict[str, Any] = {
        "type": f"urn:headwater:problem:{refused.code}",
        "title": HTTPStatus(refused.status).phrase,
        "status": refused.status,
        "detail": refused.message,
        "code": refused.code,
        "fields": refused.fields,
        "request_id": request.META.get("HEADWATER_REQUEST_ID", ""),
    }
    response = JsonResponse(body, status=refused.status, content_type=CONTENT_TYPE)
    if refused.status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="headwater"'
    return response


def tell_problems(api: NinjaAPI) -> None:
    """Have the API answer every error in this shape."""
    handlers: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
        Refused: problem,
        AuthenticationError: _nobody,
        HttpError: _http,
        ValidationError: _misshapen,
        Http404: no_route,
        Exception: _fault,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


def no_route(request: HttpRequest, *_: object, **__: object) -> HttpResponse:
    """There is no such address."""
    msg = f"the API has no {request.method} {request.path}: see /api/v1/openapi.json"
    return problem(request, Refused(404, "no_route", msg))


def _nobody(request: HttpRequest, _error: AuthenticationError) -> HttpResponse:
    msg = "the API needs a token: send Authorization: Bearer TOKEN, made on the page API tokens"
    return problem(request, Refused(401, "unauthorized", msg))


def _http(request: HttpRequest, error: HttpError) -> HttpResponse:
    """What the framework itself refuses: a session without CSRF token, a body that is no JSON."""
    if error.status_code == HTTPStatus.FORBIDDEN:
        msg = "a session may change nothing without the header X-CSRFToken: send it, or a token"
        return problem(request, Refused(403, "csrf", msg))
    return problem(request, Refused(error.status_code, "invalid", error.message))


def _misshapen(request: HttpRequest, error: ValidationError) -> HttpResponse:
    fields = {
        ".".join(map(str, one["loc"][1:])) or str(one["loc"][0]): str(one["msg"])
        for one in error.errors
    }
    name, why = next(iter(fields.items()))
    msg = f"{name} cannot be used: {why[:1].lower()}{why[1:]}"
    return problem(request, Refused(422, "invalid", msg, fields))


def _fault(request: HttpRequest, error: Exception) -> HttpResponse:
    """A fault of ours: logged whole, told in one sentence."""
    log.error("api: %s %s failed", request.method, request.path, exc_info=error)
    msg = "the request failed by a fault of the platform: its log has the request id"
    return problem(request, Refused(500, "fault", msg))
