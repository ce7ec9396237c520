"""The database that an address names.

    postgres://user:password@host:5432/name?sslmode=require     any parameter of libpq
    postgres://user@/name?host=/run/postgresql                  a Unix socket
    sqlite:///path, or nothing                                  the file in the home

Errors   ValueError in one sentence, without the password.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

SCHEMES = ("postgres", "postgresql")


def database(url: str, home: Path) -> dict[str, Any]:
    """Django's settings of it.

    >>> database("postgres://me:p%40ss@db:5433/headwater?sslmode=require", Path())["PASSWORD"]
    'p@ss'
    """
    if not url:
        return _sqlite(home / "controlplane.sqlite3")
    split = urlsplit(url)
    if split.scheme == "sqlite":
        return _sqlite(Path(unquote(split.path)))
    name = unquote(split.path.removeprefix("/"))
    if split.scheme not in SCHEMES or not name:
        msg = (
            f"HEADWATER_DATABASE_URL must be like postgres://user:password@host/name: got the "
            f"scheme {split.scheme!r} and the name {name!r}"
        )
        raise ValueError(msg)
    return _postgres(
        name=name,
        user=unquote(split.username or ""),
        password=unquote(split.password or ""),
        host=split.hostname or "",
        port=str(split.port or ""),
        parameters=dict(parse_qsl(split.query)),
    )


def _postgres(
    *, name: str, user: str, password: str, host: str, port: str, parameters: dict[str, str]
) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": user,
        "PASSWORD": password,
        "HOST": parameters.pop("host", host),
        "PORT": port,
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,  # a server that was restarted costs no request
        "OPTIONS": {"connect_timeout": 10, **parameters},
    }


def _sqlite(path: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "timeout": 20,
            # A transaction that reads and then writes takes its lock at once: waiting works,
            # upgrading a read lock while another writes does not.
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
