"""Where a webhook may go: to public addresses, unless private ones are allowed.

    https://hooks.example/x ─▶ every address of the host is public ─▶ ask one of them

Guarantee  the address that was checked is the one that is connected to: a name that changes between
           the two leads nowhere else. Redirects are not followed.
Errors     Forbidden, in one sentence.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

from controlplane import environment

Resolve = Callable[[str, int], list[str]]


class Forbidden(Exception):
    """The target is not one that may be asked."""


def private_allowed() -> bool:
    """Whether the installation lets webhooks go to its own network."""
    return environment.flag("HEADWATER_WEBHOOKS_PRIVATE")


def addresses_of(host: str, port: int) -> list[str]:
    """What the name resolves to."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        msg = f"webhook target {host} has no address: {error}; check the name"
        raise Forbidden(msg) from error
    return [str(one[4][0]) for one in found]


def checked_address(url: str, *, private: bool, resolve: Resolve = addresses_of) -> str:
    """An address of the URL's host that may be connected to. Raises Forbidden."""
    split = checked_url(url, private=private)
    addresses = resolve(str(split.hostname), split.port or (443 if split.scheme == "https" else 80))
    for address in addresses:
        if not private and not ipaddress.ip_address(address.partition("%")[0]).is_global:
            msg = (
                f"webhook target {split.hostname} is in a private network: got {address}; "
                "give a public one, or start the platform with HEADWATER_WEBHOOKS_PRIVATE=1"
            )
            raise Forbidden(msg)
    return addresses[0]


def checked_url(url: str, *, private: bool) -> SplitResult:
    """The parts of a webhook's URL. Raises Forbidden."""
    split = urlsplit(url)
    schemes = ("https", "http") if private else ("https",)
    try:
        port_is_fine = split.port is None or split.port > 0
    except ValueError:
        port_is_fine = False
    if split.scheme not in schemes or not split.hostname or split.username or not port_is_fine:
        msg = f"webhook target must be an {' or '.join(schemes)} address: got {url[:80]!r}"
        raise Forbidden(msg)
    return split
