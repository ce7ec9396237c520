"""Who may send what: token, browser origin, host name, size of the body.

    request ─▶ Guard ─▶ 401 no or wrong token   (when one is set)
                     ─▶ 403 sent by a page of another site, or to a name that is not ours
                     ─▶ 413 body over the limit
                     ─▶ app

Uploading a job is running code. Without a token the engine listens on loopback only, and there the
danger is a web page in the user's own browser: it can post a form to 127.0.0.1, or reach it under
a name of its own. Browsers tell where a request comes from, and we refuse what is not from here.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.rest.errors import TooLarge

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})

MAX_UPLOAD_BYTES = 64 * 2**20
MAX_BODY_BYTES = 2**20
"""Everything but an upload is a few fields."""

_FOREIGN_SITES = frozenset({"cross-site", "same-site"})


class Guard:
    """ASGI middleware that lets only acceptable requests through."""

    def __init__(
        self,
        app: ASGIApp,
        token: str | None,
        hosts: Collection[str] = LOOPBACK_NAMES,
        max_upload_bytes: int = MAX_UPLOAD_BYTES,
    ) -> None:
        self.app = app
        self.token = token
        self.hosts = hosts
        self.max_upload_bytes = max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with a bounded body."""
        if scope["type"] == "websocket":  # there is none to talk to
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self._limit(str(scope["path"]))
        refusal = self._refusal(Headers(scope=scope), limit)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self.app(scope, _bounded(receive, limit), send)

    def _refusal(self, headers: Headers, limit: int) -> JSONResponse | None:
        if self.token is not None and not _has_token(headers, self.token):
            sentence = "a bearer token is needed; send the header Authorization: Bearer <token>"
            return _refused(401, sentence, {"WWW-Authenticate": "Bearer"})
        if self.token is None and _host_name(headers) not in self.hosts:
            shown = headers.get("host", "")[:80]
            return _refused(403, f"host {shown!r} is not this engine; use its loopback address")
        if _is_foreign(headers):
            return _refused(403, "requests from pages of other sites are refused")
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            return _refused(413, _too_large(limit))
        return None

    def _limit(self, path: str) -> int:
        return self.max_upload_bytes if path.endswith("/jars/upload") else MAX_BODY_BYTES


def _has_token(headers: Headers, token: str) -> bool:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    # Compared in constant time: how much of it is right must not show in how long we take.
    is_right = hmac.compare_digest(given.strip().encode(), token.encode())
    return is_right and scheme.lower() == "bearer"


def _host_name(headers: Headers) -> str | None:
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname
    except ValueError:
        return None


def _is_foreign(headers: Headers) -> bool:
    if headers.get("sec-fetch-site") in _FOREIGN_SITES:
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _bounded(receive: Receive, limit: int) -> Receive:
    """Count what arrives: a body may be sent in chunks, without saying its length."""
    received = 0

    async def bounded() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise TooLarge(_too_large(limit))
        return message

    return bounded


def _too_large(limit: int) -> str:
    return f"request body is too large: at most {limit} bytes are taken"


def _refused(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"errors": [sentence]}, status_code=status, headers=headers)
