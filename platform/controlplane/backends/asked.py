"""Questions that a page asks an engine itself: shared by all who ask at once, and never long.

    asked(cluster, ("statistics", job, 300), lambda engine: engine.statistics(job, 300)) ─▶ Answer

Cost     an answer serves everybody for a second; an engine that hangs costs a page QUICK_S.
Missing  an engine that is away, or that does not know what was asked for, gives a sentence and no
         value; nothing is made up for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar

from controlplane.backends.connections import close_connections, connection
from controlplane.backends.models import Cluster
from controlplane.backends.registry import FAKE
from controlplane.backends.tokens import Address, address_of
from controlplane.moments import now_ms
from controlplane.resting import at_rest
from engine.rest.client import ClientError, EngineClient, NotFound

T = TypeVar("T")

SHARED_S = 1.0
QUICK_S = 3.0
REMEMBERED = 512
"""Questions whose last answer is kept."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What an engine said, and when; `value` None: it said nothing, and `reason` why."""

    value: T | None
    at_ms: int
    reason: str = ""
    is_unknown: bool = False
    """The engine answers, and has no such thing."""


@dataclass(slots=True)
class _Shared:
    """The last answer, and the lock under which the next one is asked for."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    taken_s: float = float("-inf")
    answer: Answer[Any] = field(default_factory=lambda: Answer(None, 0))


def asked(cluster: Cluster, key: Hashable, question: Callable[[EngineClient], T]) -> Answer[T]:
    """The answer to a question, as old as a second at most; `key` names the question."""
    if cluster.url.startswith(FAKE):
        return Answer(None, now_ms(), f"the cluster {cluster.name} has no engine that could answer")
    shared = _shared(cluster.url, key)
    with at_rest(), shared.lock:
        if time.monotonic() - shared.taken_s > SHARED_S:
            shared.answer = _ask(address_of(cluster), question)
            shared.taken_s = time.monotonic()
        return shared.answer


def forget() -> None:
    """Forget every answer and close every connection; for tests."""
    _shared.cache_clear()
    close_connections()


@lru_cache(maxsize=REMEMBERED)
def _shared(url: str, key: Hashable) -> _Shared:
    return _Shared()


def client_of(address: Address) -> EngineClient:
    """Who asks while a page waits."""
    return connection(address, QUICK_S)


def _ask(address: Address, question: Callable[[EngineClient], T]) -> Answer[T]:
    try:
        return Answer(question(client_of(address)), now_ms())
    except NotFound as error:
        return Answer(None, now_ms(), error.message, is_unknown=True)
    except ClientError as error:
        return Answer(None, now_ms(), str(error))
