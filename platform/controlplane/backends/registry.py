"""From a cluster to the engine behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.backends import fake
from controlplane.backends.rest import RestBackend
from controlplane.backends.tokens import address_of

if TYPE_CHECKING:
    from controlplane.backends.contract import EngineBackend
    from controlplane.backends.models import Cluster

FAKE = "fake://"


def client_for(cluster: Cluster) -> EngineBackend:
    """The engine of `cluster`; asks nothing yet."""
    if cluster.url.startswith(FAKE):
        return fake.engine(cluster.url.removeprefix(FAKE))
    return RestBackend.at(address_of(cluster))
