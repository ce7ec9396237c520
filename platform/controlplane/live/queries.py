"""Latest live values for the first paint of a page.

Guarantee  a page never fails for want of a live value: without the server there is none, and the
           page shows dashes until the socket brings figures.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from redis import RedisError

from controlplane.live.fleet import FleetView
from controlplane.live.latest import latest_store
from controlplane.live.topics import FLEET, Payload, parse

log = logging.getLogger(__name__)


def latest(name: str) -> Payload:
    """The whole value of a topic, empty when nothing is known."""
    topic = parse(name)
    if topic is None:
        return {}
    try:
        return latest_store().get(topic).value
    except (RedisError, OSError) as error:
        log.warning("live: topic %s not read: %s", name, error)
        return {}


def latest_fleet(job_ids: Iterable[int]) -> Payload:
    """The fleet as somebody sees it who may see these jobs."""
    return FleetView(frozenset(str(job_id) for job_id in job_ids)).whole(latest(FLEET))
