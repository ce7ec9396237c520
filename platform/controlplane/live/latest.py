"""The latest value of every live topic: first paint and snapshots come from here.

    live:<topic>        hash, field -> JSON; in a table the field is row ␟ column
                        list of JSON for a log, newest last
    live:<topic>:seq    number of the last change

Guarantee  value and number are read and written together. A number never goes back: a topic that
           is new (or whose server lost everything) starts at the epoch milliseconds of now.
Needs    one writer per topic at a time; two would only make a patch larger than it must be.
Errors   redis.RedisError when the server cannot be reached: nothing here is the only copy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from time import monotonic
from typing import Any, Protocol, cast

import redis
from django.conf import settings

from controlplane.live.merging import Held, difference, dump, patch_of, value_of
from controlplane.live.topics import LOG_LENGTH, Payload, Shape, Topic
from controlplane.moments import now_ms

_KEPT_SECONDS = 7 * 24 * 3600
"""A topic that nothing was said about for a week is forgotten."""
_EXTEND_EVERY_S = 3_600.0
"""Not at every change: two more commands would be half of all."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole value of a topic after its change number `seq`."""

    seq: int
    value: Payload


@dataclass(frozen=True, slots=True)
class Change:
    """What a merge changed, and the number that it got."""

    seq: int
    patch: Payload


class LatestStore(Protocol):
    """Where latest values are kept."""

    def get(self, topic: Topic) -> Snapshot:
        """The whole value."""

    def merge(self, topic: Topic, value: Payload) -> Change | None:
        """Merge `value` in (an event: append it); None when that changes nothing."""

    def merge_all(self, values: Sequence[tuple[Topic, Payload]]) -> list[Change | None]:
        """The same for many, of which each is merged as a whole."""

    def forget(self, topic: Topic) -> None:
        """Drop the value."""

    def seqs(self, topics: Iterable[Topic]) -> list[int]:
        """The number of the last change of each; 0 when nobody ever said or asked anything."""


def latest_store() -> LatestStore:
    """The store that belongs to the configured channel layer: Redis, or memory in tests."""
    if "InMemory" in settings.CHANNEL_LAYERS["default"]["BACKEND"]:
        return _memory()
    return _redis(settings.HEADWATER_REDIS_URL)


@cache
def _memory() -> MemoryLatest:
    return MemoryLatest()


@cache
def _redis(url: str) -> RedisLatest:
    return RedisLatest(redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=2))


class RedisLatest:
    """Latest values in a Redis server."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._extend_at: dict[str, float] = {}
        """When a topic's time to live is set anew."""

    def get(self, topic: Topic) -> Snapshot:
        """The whole value."""
        with self._client.pipeline(transaction=True) as pipe:
            self._read(pipe, topic)
            # Numbering starts at the first look, so that the first change is the next number.
            pipe.set(_seq_key(topic), now_ms(), nx=True, ex=_KEPT_SECONDS)
            pipe.get(_seq_key(topic))
            held, _, seq = pipe.execute()
        return Snapshot(int(seq), value_of(topic, held))

    def merge(self, topic: Topic, value: Payload) -> Change | None:
        """Merge `value` in; None when that changes nothing."""
        return self.merge_all([(topic, value)])[0]

    def merge_all(self, values: Sequence[tuple[Topic, Payload]]) -> list[Change | None]:
        """Merge many in: one round trip to read, and one to write."""
        held = self._held(topic for topic, _ in values)
        with self._client.pipeline(transaction=True) as pipe:
            queued = [self._queue(pipe, topic, value, held.get(topic)) for topic, value in values]
            found = pipe.execute()
        return [one and Change(int(found[one[0]]), one[1]) for one in queued]

    def forget(self, topic: Topic) -> None:
        """Drop the value; its number stays, so that it never goes back."""
        self._client.delete(_key(topic))

    def seqs(self, topics: Iterable[Topic]) -> list[int]:
        """The number of the last change of each."""
        keys = [_seq_key(topic) for topic in topics]
        found = cast("list[bytes | None]", self._client.mget(keys)) if keys else []
        return [int(seq or 0) for seq in found]

    def _read(self, pipe: Any, topic: Topic) -> None:
        if topic.shape is Shape.LOG:
            pipe.lrange(_key(topic), 0, -1)
        else:
            pipe.hgetall(_key(topic))

    def _held(self, topics: Iterable[Topic]) -> dict[Topic, Held]:
        """What the hashes among them hold."""
        hashes = [topic for topic in dict.fromkeys(topics) if topic.shape is not Shape.LOG]
        with self._client.pipeline(transaction=False) as pipe:
            for topic in hashes:
                pipe.hgetall(_key(topic))
            return dict(zip(hashes, pipe.execute(), strict=True))

    def _queue(
        self, pipe: Any, topic: Topic, value: Payload, held: Held | None
    ) -> tuple[int, Payload] | None:
        """Queue what is new; where its number will be among the answers, and the patch."""
        if held is None:
            pipe.rpush(_key(topic), dump(value))
            pipe.ltrim(_key(topic), -LOG_LENGTH, -1)
            return self._queue_number(pipe, topic), value
        changed, dropped = difference(topic, held, value)
        if not changed and not dropped:
            return None
        if changed:
            pipe.hset(_key(topic), mapping=cast("dict[Any, Any]", changed))
        if dropped:
            pipe.hdel(_key(topic), *cast("list[Any]", dropped))
        return self._queue_number(pipe, topic), patch_of(topic, changed, dropped)

    def _queue_number(self, pipe: Any, topic: Topic) -> int:
        """Queue the change's number; its place among the answers."""
        pipe.set(_seq_key(topic), now_ms(), nx=True)
        pipe.incr(_seq_key(topic))
        place = len(pipe) - 1
        if monotonic() >= self._extend_at.get(topic.name, 0.0):
            self._extend_at[topic.name] = monotonic() + _EXTEND_EVERY_S
            pipe.expire(_key(topic), _KEPT_SECONDS)
            pipe.expire(_seq_key(topic), _KEPT_SECONDS)
        return place


@dataclass(slots=True)
class MemoryLatest:
    """Latest values in this process only: for tests, where the channel layer is in memory too."""

    _held: dict[str, dict[bytes, bytes]] = field(default_factory=dict)
    _logs: dict[str, list[bytes]] = field(default_factory=dict)
    _seqs: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, topic: Topic) -> Snapshot:
        """The whole value."""
        with self._lock:
            held = self._logs if topic.shape is Shape.LOG else self._held
            seq = self._seqs.setdefault(topic.name, now_ms())
            return Snapshot(seq, value_of(topic, held.get(topic.name, {})))

    def merge(self, topic: Topic, value: Payload) -> Change | None:
        """Merge `value` in; None when that changes nothing."""
        with self._lock:
            if topic.shape is Shape.LOG:
                log = self._logs.setdefault(topic.name, [])
                log.append(dump(value))
                del log[:-LOG_LENGTH]
                return Change(self._number(topic), value)
            held = self._held.setdefault(topic.name, {})
            changed, dropped = difference(topic, held, value)
            if not changed and not dropped:
                return None
            held.update({name.encode(): raw for name, raw in changed.items()})
            for name in dropped:
                del held[name]
            return Change(self._number(topic), patch_of(topic, changed, dropped))

    def merge_all(self, values: Sequence[tuple[Topic, Payload]]) -> list[Change | None]:
        """Merge many in."""
        return [self.merge(topic, value) for topic, value in values]

    def forget(self, topic: Topic) -> None:
        """Drop the value."""
        with self._lock:
            self._held.pop(topic.name, None)
            self._logs.pop(topic.name, None)

    def seqs(self, topics: Iterable[Topic]) -> list[int]:
        """The number of the last change of each."""
        with self._lock:
            return [self._seqs.get(topic.name, 0) for topic in topics]

    def _number(self, topic: Topic) -> int:
        self._seqs[topic.name] = self._seqs.get(topic.name, now_ms()) + 1
        return self._seqs[topic.name]


def _key(topic: Topic) -> str:
    return f"live:{topic.name}"


def _seq_key(topic: Topic) -> str:
    return f"live:{topic.name}:seq"
