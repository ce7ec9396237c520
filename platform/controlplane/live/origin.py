"""Origin check of the WebSocket: only pages of this very host and port may open one.

Channels' own check compares host names; cookies are shared between ports, so a page that another
program on this machine serves would pass it.
"""

# Channels has no annotations.
# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings


class SameOrigin:
    """ASGI middleware that denies a socket from elsewhere."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Pass on or deny."""
        headers = {
            name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        inner = self.application if is_same(headers) else WebsocketDenier()
        return await inner(scope, receive, send)


def is_same(headers: dict[str, str]) -> bool:
    """Whether the request's `Origin` is its `Host`, or one that the settings trust."""
    origin = headers.get("origin", "")
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    return bool(origin) and urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
