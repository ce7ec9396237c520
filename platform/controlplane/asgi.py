"""ASGI entry: pages and the write endpoint over HTTP, live data over one WebSocket.

uvicorn controlplane.asgi:application --lifespan off
"""

# Channels has no annotations.
# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
pages = get_asgi_application()  # loads the apps, which the imports below need

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator, WebsocketDenier  # noqa: E402
from django.urls import path, re_path  # noqa: E402

from controlplane.live.consumer import LiveConsumer  # noqa: E402
from controlplane.live.origin import SameOrigin  # noqa: E402

sockets = [path("ws/", LiveConsumer.as_asgi()), re_path("", WebsocketDenier.as_asgi())]
socket = AuthMiddlewareStack(URLRouter(sockets))
application = ProtocolTypeRouter(
    {"http": pages, "websocket": AllowedHostsOriginValidator(SameOrigin(socket))}
)
