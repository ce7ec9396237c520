"""The token with which the platform speaks to its own engine, see `engine.rest.tokens`."""

from __future__ import annotations

import os

from django.conf import settings

from engine.rest.tokens import token_of


def token_for(url: str) -> str | None:
    """What an engine is shown; other clusters have other owners, who must not learn it."""
    ours = str(settings.HEADWATER_ENGINE_URL).rstrip("/")
    return token_of(os.environ) if url.rstrip("/") == ours else None
