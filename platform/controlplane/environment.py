"""Settings from environment variables, each with a default that works on one machine.

HEADWATER_HOME            folder of everything that is kept; default `.headwater` in the checkout
HEADWATER_SECRET_KEY      else generated once into HOME/secret_key, readable by its owner only
HEADWATER_ALLOWED_HOSTS   comma-separated host names; default loopback
HEADWATER_DATABASE_URL    postgres://user:password@host/name?sslmode=require; none: SQLite in HOME;
                          or HEADWATER_DATABASE_URL_FILE
HEADWATER_REDIS_URL       unix:///path/redis.sock, redis://:password@host:6379/0, rediss:// for TLS;
                          or HEADWATER_REDIS_URL_FILE
HEADWATER_REDIS_SERVER    program that `manage.py up` runs as its Redis; default: the one it brings
HEADWATER_EMAIL_URL       mail server: smtp://user:password@host:587, smtps:// for TLS at once;
                          or HEADWATER_EMAIL_URL_FILE
HEADWATER_EMAIL_FROM      whom its mails are from
HEADWATER_PROXY           1 when a proxy in front sets X-Forwarded-Host
HEADWATER_WEBHOOKS_PRIVATE
                          1 lets webhooks of alerts go to private networks, and by plain http
HEADWATER_ENGINE_URL      REST address of the embedded cluster
HEADWATER_ENGINE_TOKEN    what that asks for, if it does; or HEADWATER_ENGINE_TOKEN_FILE
HEADWATER_OUTPUT_FOLDERS  comma-separated folders whose files the outputs pages may read; default
                          `output` in HOME
HEADWATER_TRUSTED_ORIGINS comma-separated origins whose pages may post here, besides our own
HEADWATER_HTTPS           1 when a proxy in front speaks HTTPS: cookies become Secure
HEADWATER_OIDC_ISSUER     address of a provider of single sign-on (OpenID Connect); none: off
HEADWATER_OIDC_CLIENT_ID  who we are there
HEADWATER_OIDC_CLIENT_SECRET
                          and how we prove it; or HEADWATER_OIDC_CLIENT_SECRET_FILE
HEADWATER_OIDC_NAME       what the button on the login page says; default "single sign-on"
HEADWATER_METRICS_URL     where the embedded engine reports its figures; default the platform itself
HEADWATER_METRICS_TOKEN   what that asks for, where it is somewhere else
HEADWATER_INFLUX_URL      InfluxDB 2 that keeps series, instead of the platform itself
HEADWATER_INFLUX_TOKEN    what it asks for; or HEADWATER_INFLUX_TOKEN_FILE
HEADWATER_INFLUX_ORG      its organisation; default headwater
HEADWATER_POINTS_TOKEN_SHA256
                          SHA-256, in hex, of the token with which points are written to the
                          platform and its /metrics read; none: nobody may. `manage.py up` sets it
HEADWATER_GRAFANA_URL     Grafana that pages link to; none: no links
HEADWATER_DEBUG           1 shows tracebacks in pages
HEADWATER_DEMO_SPEED      multiple of real time of the demo's flights; default a day a second
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from urllib.parse import unquote, urlsplit


def home(checkout: Path) -> Path:
    """The folder of everything that is kept."""
    return Path(os.environ.get("HEADWATER_HOME") or checkout / ".headwater").absolute()


def flag(name: str) -> bool:
    """Whether the variable says yes."""
    return os.environ.get(name, "").lower() in {"1", "true", "yes", "on"}


def words(name: str, default: list[str]) -> list[str]:
    """A comma-separated variable."""
    return [word.strip() for word in os.environ.get(name, "").split(",") if word.strip()] or default


def secret(name: str) -> str:
    """A secret: the variable, or the content of the file that `NAME_FILE` names."""
    path = os.environ.get(f"{name}_FILE", "")
    return os.environ.get(name, "") or (Path(path).read_text().strip() if path else "")


def secret_key(folder: Path) -> str:
    """The key that signs cookies: given, or made once and kept."""
    if given := os.environ.get("HEADWATER_SECRET_KEY"):
        return given
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "secret_key"
    if not path.exists():
        _create_once(path, secrets.token_urlsafe(50))
    return path.read_text().strip()


def _create_once(path: Path, text: str) -> None:
    """Write `path` unless another process did; linked into place whole, so none reads half."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        pass  # another process was first: its key holds
    finally:
        draft.unlink()


def celery_url(redis_url: str) -> str:
    """The same server as Celery writes it; of TLS it wants to be told what is checked.

    >>> celery_url("rediss://:secret@redis:6380/0")
    'rediss://:secret@redis:6380/0?ssl_cert_reqs=required'
    """
    if redis_url.startswith("rediss://") and "ssl_cert_reqs" not in redis_url:
        return f"{redis_url}{'&' if '?' in redis_url else '?'}ssl_cert_reqs=required"
    return redis_url.replace("unix://", "redis+socket://", 1)


def mail(url: str) -> dict[str, object]:
    """Django's settings of the mail server that an address names; none without one.

    >>> mail("smtp://ops:s%3Acret@mail.example.org:587")["EMAIL_HOST_PASSWORD"]
    's:cret'
    """
    if not url:
        return {}
    split = urlsplit(url)
    if split.scheme not in {"smtp", "smtps"} or not split.hostname:
        msg = f"HEADWATER_EMAIL_URL must be like smtp://host:587: got the scheme {split.scheme!r}"
        raise ValueError(msg)
    at_once = split.scheme == "smtps"
    return {
        "EMAIL_HOST": split.hostname,
        "EMAIL_PORT": split.port or (465 if at_once else 587),
        "EMAIL_HOST_USER": unquote(split.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(split.password or ""),
        "EMAIL_USE_SSL": at_once,
        # A password never goes over an open line.
        "EMAIL_USE_TLS": not at_once and bool(split.username),
        "EMAIL_TIMEOUT": 10,
    }
