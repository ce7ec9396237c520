"""Whether there is an engine at an address, and what it is: asked just now.

Errors   Refused: 400 for an address that cannot be one, 502 when no engine answers there.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from controlplane.access.errors import Refused, invalid
from controlplane.backends.models import Cluster
from controlplane.backends.tokens import Address
from controlplane.resting import at_rest
from engine.rest.client import ClientError, EngineClient, NotFound

PROBE_S = 5.0


@dataclass(frozen=True, slots=True)
class Probe:
    """What answered."""

    kind: Cluster.Kind
    version: str
    features: tuple[str, ...]
    slots: int
    slots_free: int

    @property
    def sentence(self) -> str:
        """In words."""
        version = self.version.removeprefix("headwater-")
        free = f"{self.slots_free} of {self.slots} slots free"
        return f"{self.kind.label} {version} answers, with {free}"


def probe(address: Address) -> Probe:
    """Ask the engine what it is. Raises Refused."""
    try:
        with at_rest(), EngineClient(address.url, address.token, PROBE_S) as engine:
            overview = engine.overview()
            features = _features(engine)
    except ClientError as error:
        msg = f"no engine answers at {address.url}: {error}"
        raise Refused(502, "engine", msg, {"url": msg}) from error
    kind = Cluster.Kind.FLINK if features is None else Cluster.Kind.HEADWATER
    return Probe(
        kind, overview.version, features or (), overview.slots_total, overview.slots_available
    )


def _features(engine: EngineClient) -> tuple[str, ...] | None:
    """None: the engine has no such route, as Apache Flink."""
    try:
        return tuple(sorted(engine.capabilities().features))
    except NotFound:
        return None


def checked_url(text: str) -> str:
    """An address as it is kept: http or https, a host, no password in it. Raises Refused."""
    url = text.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        port_is_good = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_is_good = urlsplit(""), False
    plain = not (parts.username or parts.password or parts.query or parts.fragment)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not plain or not port_is_good:
        msg = (
            f"engine address cannot be used: got {_without_password(url)!r}; give it as "
            "http://host:port, and the token in its own field"
        )
        raise invalid(msg, "url")
    return url


def _without_password(url: str) -> str:
    """What may be shown of an address that was refused."""
    before, at, after = url[:200].rpartition("@")
    return f"…@{after}" if at and before else url[:200]
