"""Single sign-on with OpenID Connect: the code flow with PKCE, state and nonce.

    begin(…)    ─▶ address of the provider, and what the session keeps until the person is back
    finish(…)   ─▶ the person as the provider knows them; their ID token is verified

    provider    discovery: {issuer}/.well-known/openid-configuration
                authorization endpoint, by the browser; token endpoint and keys, by us

Guarantee   Nobody is logged in by an answer that was not asked for by the same browser (state), for
            this login (nonce), with the secret that only we know (PKCE verifier).
Errors      Refused: 404 when it is not set up, 403 when the provider or a check says no, 502 when
            the provider does not answer or is set up wrong.
Source      OpenID Connect Core 1.0; RFC 7636 (PKCE); RFC 9207 (iss in the answer).
"""

# Authlib has no annotations.
# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx
from authlib.common.errors import AuthlibBaseError
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from django.conf import settings
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from controlplane.access.errors import Refused

SCOPE = "openid profile email"
ALGORITHMS = ["RS256", "PS256", "ES256", "RS384", "ES384", "RS512", "ES512", "EdDSA"]
"""None of those that share a secret: our client secret is no key for signatures."""
TIMEOUT_S = 5.0
LEEWAY_S = 60
"""Clocks of two machines differ."""
PATIENCE = timedelta(minutes=15)
"""A person may have to find their second factor."""
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Provider:
    """Where people log in, and who we are there."""

    issuer: str
    client_id: str
    client_secret: str

    @classmethod
    def of_settings(cls) -> Self:
        """The one that is set up. Raises Refused (404) when none is."""
        issuer = settings.HEADWATER_OIDC_ISSUER.rstrip("/")
        if not issuer:
            raise Refused(404, "not_found", "single sign-on is not set up here: use a login link")
        parts = urlsplit(issuer)
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            msg = f"issuer must be an https address: got {issuer}"
            raise _broken(msg)
        return cls(issuer, settings.HEADWATER_OIDC_CLIENT_ID, settings.HEADWATER_OIDC_CLIENT_SECRET)


@dataclass(frozen=True, slots=True)
class Pending:
    """What the session keeps until the person is back."""

    state: str
    nonce: str
    verifier: str
    redirect_uri: str
    next: str
    at: str

    def as_json(self) -> dict[str, str]:
        """As the session stores it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Subject:
    """A person as the provider knows them."""

    issuer: str
    subject: str
    name: str
    """What they would like to be called; others may be called the same."""


def begin(provider: Provider, redirect_uri: str, then: str, now: datetime) -> tuple[str, Pending]:
    """Where to send the browser, and what to keep."""
    pending = Pending(
        state=secrets.token_urlsafe(24),
        nonce=secrets.token_urlsafe(24),
        verifier=secrets.token_urlsafe(48),
        redirect_uri=redirect_uri,
        next=then,
        at=now.isoformat(),
    )
    with httpx.Client(timeout=TIMEOUT_S) as http:
        found = _discover(http, provider)
    address = prepare_grant_uri(
        found["authorization_endpoint"],
        provider.client_id,
        "code",
        redirect_uri=redirect_uri,
        scope=SCOPE,
        state=pending.state,
        nonce=pending.nonce,
        code_challenge=create_s256_code_challenge(pending.verifier),
        code_challenge_method="S256",
    )
    return str(address), pending


def finish(
    provider: Provider, pending: Pending | None, answer: Mapping[str, str], now: datetime
) -> Subject:
    """The person whom the provider sends back.

    1  the answer belongs to the login that this browser began, not long ago
    2  the code is exchanged for an ID token, with the verifier
    3  the token is signed by the provider, for us, for this login, and has not expired
    """
    pending = _checked(provider, pending, answer, now)
    with httpx.Client(timeout=TIMEOUT_S) as http:
        found = _discover(http, provider)
        token = _exchange(http, found["token_endpoint"], provider, pending, answer["code"])
        keys = _json(http, provider, "GET", found["jwks_uri"])
    claims = _verified(provider, pending, token, keys, now)
    name = claims.get("preferred_username") or str(claims.get("email", "")).partition("@")[0]
    return Subject(provider.issuer, str(claims["sub"]), str(name))


def _checked(
    provider: Provider, pending: Pending | None, answer: Mapping[str, str], now: datetime
) -> Pending:
    """Step 1."""
    given = answer.get("state", "")
    if pending is None or not hmac.compare_digest(pending.state, given):
        msg = "this login did not begin in this browser: begin again"
        raise _no(msg)
    if now - datetime.fromisoformat(pending.at) > PATIENCE:
        msg = "this login took longer than a quarter of an hour: begin again"
        raise _no(msg)
    if error := answer.get("error"):
        why = answer.get("error_description") or error
        msg = f"the provider of single sign-on said no: {why[:200]}"
        raise _no(msg)
    if answer.get("iss", provider.issuer).rstrip("/") != provider.issuer:
        msg = "the answer is of another provider than was asked: begin again"
        raise _no(msg)
    if not answer.get("code"):
        msg = "the provider of single sign-on sent no code: begin again"
        raise _no(msg)
    return pending


def _discover(http: httpx.Client, provider: Provider) -> Mapping[str, Any]:
    """Where the provider's endpoints are."""
    found = _json(http, provider, "GET", f"{provider.issuer}/.well-known/openid-configuration")
    if str(found.get("issuer", "")).rstrip("/") != provider.issuer:
        msg = f"{provider.issuer} says that it is {found.get('issuer')!r}"
        raise _broken(msg)
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        if not isinstance(found.get(name), str):
            msg = f"{provider.issuer} does not say its {name}"
            raise _broken(msg)
    return found


def _exchange(
    http: httpx.Client, address: str, provider: Provider, pending: Pending, code: str
) -> str:
    """Step 2: the ID token."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": pending.redirect_uri,
        "code_verifier": pending.verifier,
    }
    who = (quote(provider.client_id, safe=""), quote(provider.client_secret, safe=""))
    found = _json(http, provider, "POST", address, data=form, auth=who)
    token = found.get("id_token")
    if not isinstance(token, str):
        why = found.get("error_description") or found.get("error") or "it sent no ID token"
        msg = f"the provider of single sign-on did not accept the login: {str(why)[:200]}"
        raise _no(msg)
    return token


def _verified(
    provider: Provider, pending: Pending, token: str, keys: Any, now: datetime
) -> Mapping[str, Any]:
    """Step 3."""
    options: Any = {
        "iss": {"essential": True, "values": [provider.issuer, f"{provider.issuer}/"]},
        "aud": {"essential": True, "value": provider.client_id},
    }
    params = {"nonce": pending.nonce, "client_id": provider.client_id}
    try:
        signed = jwt.decode(token, KeySet.import_key_set(keys), algorithms=ALGORITHMS)
        claims = CodeIDToken(signed.claims, signed.header, options, params)
        claims.validate(now=int(now.timestamp()), leeway=LEEWAY_S)
    except (JoseError, AuthlibBaseError, ValueError, KeyError, TypeError) as error:
        msg = f"the ID token of single sign-on is not valid: {error}"
        raise _no(msg) from error
    return dict(claims)


def _json(
    http: httpx.Client, provider: Provider, method: str, url: str, **options: Any
) -> dict[str, Any]:
    """An answer of the provider, an object."""
    try:
        answer = http.request(method, url, **options)
        found = answer.json()
    except httpx.HTTPError as error:
        why = str(error) or type(error).__name__
        msg = f"{provider.issuer} does not answer: {why}"
        raise _broken(msg) from error
    except ValueError as error:
        msg = f"{url} answered {answer.status_code} without JSON"
        raise _broken(msg) from error
    if not isinstance(found, dict):
        msg = f"{url} answered with something else than an object"
        raise _broken(msg)
    return found


def _no(why: str) -> Refused:
    return Refused(403, "sso", why)


def _broken(why: str) -> Refused:
    return Refused(502, "sso", f"single sign-on does not work: {why}; log in by a link meanwhile")
