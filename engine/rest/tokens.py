"""The token of an engine: whoever has it may start jobs, which is to run code.

    HEADWATER_ENGINE_TOKEN          the token itself, or
    HEADWATER_ENGINE_TOKEN_FILE     a file that holds it and nothing else

Never an argument: those are seen by everyone on the machine. Both variables are read by the job
manager, the command line and the control plane.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path

from engine.errors import ConfigError

VARIABLE = "HEADWATER_ENGINE_TOKEN"
FILE_VARIABLE = "HEADWATER_ENGINE_TOKEN_FILE"

LEAST_LENGTH = 16
"""Of one that guards an address which others reach."""


def token_of(variables: Mapping[str, str]) -> str | None:
    """The token that the environment names, if it names one. Raises ConfigError.

    >>> token_of({"HEADWATER_ENGINE_TOKEN": " secret "})
    'secret'
    """
    token = variables.get(VARIABLE, "").strip() or _read(variables.get(FILE_VARIABLE, ""))
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        msg = f"token must be of letters, digits and signs, without spaces; see {VARIABLE}"
        raise ConfigError(msg)
    return token


def _read(path: str) -> str | None:
    if not path:
        return None
    try:
        token = Path(path).read_text().strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        msg = f"token file {path} cannot be read: {reason}; check {FILE_VARIABLE}"
        raise ConfigError(msg) from error
    if not token:
        msg = f"token file {path} is empty: write a token into it, or leave {FILE_VARIABLE} out"
        raise ConfigError(msg)
    return token


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "10.0.0.7")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name, of which we cannot know what it will mean


def check_address(host: str, token: str | None) -> None:
    """Refuse an address that others reach, unless a token guards it. Raises ConfigError."""
    if is_loopback(host):
        return
    if token is None:
        msg = (
            f"address {host} is reached by other machines, and no token guards it: set {VARIABLE} "
            f"or {FILE_VARIABLE}, or keep to 127.0.0.1"
        )
        raise ConfigError(msg)
    if len(token) < LEAST_LENGTH:
        msg = (
            f"token is too short for address {host}, which other machines reach: got {len(token)} "
            f"characters; take at least {LEAST_LENGTH}, e.g. of `openssl rand -hex 32`"
        )
        raise ConfigError(msg)
