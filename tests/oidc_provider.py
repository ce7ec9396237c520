"""A small provider of single sign-on, over loopback: discovery, codes, PKCE, signed ID tokens."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from django.utils import timezone
from joserfc import jwt
from joserfc.jwk import ECKey

CLIENT, SECRET = "headwater", "s:e/c r%et"


@dataclass
class Provider:
    """One person is logged in there; what it says of them can be bent."""

    issuer: str = ""
    claims: dict[str, Any] = field(
        default_factory=lambda: {"sub": "u-1", "preferred_username": "zoe"}
    )
    key: ECKey = field(default_factory=lambda: ECKey.generate_key("P-256"))
    signs_with: ECKey | None = None
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    wrong_issuer: str = ""

    def discovery(self) -> dict[str, str]:
        return {
            "issuer": self.wrong_issuer or self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is sent back to."""
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, str]]:
        name, _, secret = base64.b64decode(authorization.partition(" ")[2]).decode().partition(":")
        asked = self.codes.pop(form["code"], None)  # a code serves once
        if (unquote(name), unquote(secret)) != (CLIENT, SECRET):
            return 401, {"error": "invalid_client"}
        if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return 400, {"error": "invalid_grant", "error_description": "the code is used up"}
        if create_s256_code_challenge(form["code_verifier"]) != asked["code_challenge"]:
            return 400, {"error": "invalid_grant", "error_description": "the verifier is wrong"}
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": self.id_token(asked)}

    def id_token(self, asked: dict[str, str]) -> str:
        now = timezone.now().timestamp()
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "nonce": asked["nonce"],
            "iat": int(now),
            "exp": int(now) + 300,
        }
        header = {"alg": "ES256", "kid": self.key.thumbprint()}
        return jwt.encode(header, claims | self.claims, self.signs_with or self.key)

    def keys(self) -> dict[str, Any]:
        return {"keys": [self.key.as_dict(private=False) | {"kid": self.key.thumbprint()}]}


@contextmanager
def running() -> Iterator[Provider]:
    """A provider that answers until the end of the block."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", provider.authorize(_flat(parts.query)))
                self.end_headers()
                return
            found = {
                "/.well-known/openid-configuration": provider.discovery,
                "/keys": provider.keys,
            }
            self._say(200, found[parts.path]())

        def do_POST(self) -> None:
            form = _flat(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._say(*provider.token(form, self.headers["Authorization"]))

        def _say(self, status: int, body: object) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.issuer = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()


def _flat(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text).items()}
