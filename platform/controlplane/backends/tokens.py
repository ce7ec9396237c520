"""Where an engine is reached and with which token; the token is never shown and never logged.

    Cluster.sealed_token ──unseal──▶ Address(url, token)
    the engine of this platform      its token is in the environment, see `engine.rest.tokens`

Guarantee   What the database holds of a token is useless without the platform's secret key. When
            that key changes the tokens cannot be read any more, and are to be given again.
"""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass, field

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from controlplane.backends.models import Cluster
from engine.rest.tokens import token_of


@dataclass(frozen=True, slots=True)
class Address:
    """Where an engine is reached."""

    url: str
    token: str | None = field(default=None, repr=False)


def address_of(cluster: Cluster) -> Address:
    """Where that engine is reached, and with what."""
    if cluster.sealed_token:
        return Address(cluster.url, unseal(cluster.sealed_token))
    return Address(cluster.url, token_for(cluster.url))


def token_for(url: str) -> str | None:
    """What our own engine is shown; other clusters have other owners, who must not learn it."""
    ours = str(settings.HEADWATER_ENGINE_URL).rstrip("/")
    return token_of(os.environ) if url.rstrip("/") == ours else None


def seal(token: str) -> str:
    """The token as the database keeps it."""
    return _fernet().encrypt(token.encode()).decode() if token else ""


def unseal(sealed: str) -> str | None:
    """The token; None when it was sealed with another secret key."""
    try:
        return _fernet().decrypt(sealed.encode()).decode()
    except InvalidToken:
        return None


def _fernet() -> Fernet:
    secret = f"cluster tokens:{settings.SECRET_KEY}".encode()
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(secret).digest()))
