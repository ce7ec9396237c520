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

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, cast

import redis
from django.conf import settings

from controlplane.live.topics import LOG_LENGTH, Payload, Shape, Topic
from controlplane.moments import now_ms

_SEPARATOR = "\x1f"
_KEPT_SECONDS = 7 * 24 * 3600
"""A topic that nothing was said about for a week is forgotten."""


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

    def get(self, topic: Topic) -> Snapshot:
        """The whole value."""
        with self._client.pipeline(transaction=True) as pipe:
            self._read(pipe, topic)
            # Numbering starts at the first look, so that the first change is the next number.
            pipe.set(_seq_key(topic), now_ms(), nx=True, ex=_KEPT_SECONDS)
            pipe.get(_seq_key(topic))
            held, _, seq = pipe.execute()
        return Snapshot(int(seq), _value(topic, held))

    def merge(self, topic: Topic, value: Payload) -> Change | None:
        """Merge `value` in; None when that changes nothing."""
        if topic.shape is Shape.LOG:
            return Change(self._append(topic, value), value)
        held = cast("dict[bytes, bytes]", self._client.hgetall(_key(topic)))
        wanted = _encode(topic, value)
        changed = {name: raw for name, raw in wanted.items() if held.get(name.encode()) != raw}
        dropped = [name for name in held if _row(name) in _gone_rows(topic, value)]
        if not changed and not dropped:
            return None
        seq = self._store(topic, changed, dropped)
        return Change(seq, _patch(topic, changed, dropped))

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

    def _append(self, topic: Topic, event: Payload) -> int:
        with self._client.pipeline(transaction=True) as pipe:
            pipe.rpush(_key(topic), _dump(event))
            pipe.ltrim(_key(topic), -LOG_LENGTH, -1)
            return self._number(pipe, topic)

    def _store(self, topic: Topic, changed: dict[str, bytes], dropped: list[bytes]) -> int:
        with self._client.pipeline(transaction=True) as pipe:
            if changed:
                pipe.hset(_key(topic), mapping=cast("dict[Any, Any]", changed))
            if dropped:
                pipe.hdel(_key(topic), *cast("list[Any]", dropped))
            return self._number(pipe, topic)

    def _number(self, pipe: Any, topic: Topic) -> int:
        """Give the change its number and run the transaction."""
        pipe.set(_seq_key(topic), now_ms(), nx=True)
        pipe.incr(_seq_key(topic))
        pipe.expire(_key(topic), _KEPT_SECONDS)
        pipe.expire(_seq_key(topic), _KEPT_SECONDS)
        return int(pipe.execute()[-3])


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
            return Snapshot(seq, _value(topic, held.get(topic.name, {})))

    def merge(self, topic: Topic, value: Payload) -> Change | None:
        """Merge `value` in; None when that changes nothing."""
        with self._lock:
            if topic.shape is Shape.LOG:
                log = self._logs.setdefault(topic.name, [])
                log.append(_dump(value))
                del log[:-LOG_LENGTH]
                return Change(self._number(topic), value)
            held = self._held.setdefault(topic.name, {})
            changed = {
                name: raw
                for name, raw in _encode(topic, value).items()
                if held.get(name.encode()) != raw
            }
            dropped = [name for name in held if _row(name) in _gone_rows(topic, value)]
            if not changed and not dropped:
                return None
            held.update({name.encode(): raw for name, raw in changed.items()})
            for name in dropped:
                del held[name]
            return Change(self._number(topic), _patch(topic, changed, dropped))

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


def _dump(value: object) -> bytes:
    # NaN is no JSON: a browser could not read the whole message for it.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _encode(topic: Topic, value: Payload) -> dict[str, bytes]:
    """The hash fields that hold `value`."""
    if topic.shape is Shape.RECORD:
        return {name: _dump(one) for name, one in value.items()}
    return {
        f"{row}{_SEPARATOR}{name}": _dump(one)
        for row, columns in value.items()
        if columns is not None
        for name, one in columns.items()
    }


def _gone_rows(topic: Topic, value: Payload) -> set[str]:
    if topic.shape is not Shape.TABLE:
        return set()
    return {row for row, columns in value.items() if columns is None}


def _row(name: bytes) -> str:
    return name.decode().partition(_SEPARATOR)[0]


def _patch(topic: Topic, changed: dict[str, bytes], dropped: list[bytes]) -> Payload:
    patch = _decode(topic, {name.encode(): raw for name, raw in changed.items()})
    return patch | dict.fromkeys(_row(name) for name in dropped)


def _value(topic: Topic, held: dict[bytes, bytes] | list[bytes]) -> Payload:
    if topic.shape is Shape.LOG:
        return {"events": [json.loads(raw) for raw in held]}
    return _decode(topic, cast("dict[bytes, bytes]", held))


def _decode(topic: Topic, held: dict[bytes, bytes]) -> Payload:
    if topic.shape is Shape.RECORD:
        return {name.decode(): json.loads(raw) for name, raw in held.items()}
    table: Payload = {}
    for name, raw in held.items():
        row, _, column = name.decode().partition(_SEPARATOR)
        table.setdefault(row, {})[column] = json.loads(raw)
    return table
