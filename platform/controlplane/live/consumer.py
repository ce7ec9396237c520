"""The WebSocket at `/ws/`: one per tab, any number of topics.

    receive   browser: sub, unsub ─────▶ topics wanted ─┐
    live_message   channel layer ──▶ Subscription ──────┼─▶ writer ──▶ browser
                                    tick, heartbeat ────┘

    1  new topics are checked, and their groups joined, before the snapshot is read: what is
       published in between is in both, and its number says so
    2  snapshots, events, fragments and operations go out at once, patches once a second
    3  every 5 s numbers are compared with the store: what the channel layer lost is noticed even
       when nothing follows it; a heartbeat follows only when the store answered
    4  every 15 s the person and their roles are looked up again

Order    one task writes, so messages of a topic leave in the order of their numbers.
Errors   close code 4401: not, or no longer, signed in; 4400: a message that is not of the protocol.
"""

# Channels has no annotations.
# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from typing import Any

from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.auth.models import User
from django.contrib.staticfiles.storage import staticfiles_storage
from redis import RedisError

from controlplane.live import visibility
from controlplane.live.fleet import view_of
from controlplane.live.latest import latest_store
from controlplane.live.subscription import Subscription
from controlplane.live.topics import OF_JOBS, Family, Payload, Topic, parse
from controlplane.metrics.keeping import tell_of_process
from controlplane.metrics.self_measure import measures
from controlplane.moments import now_ms

log = logging.getLogger(__name__)

MAX_TOPICS = 64
MAX_MESSAGE_CHARS = 16_384
SIGNED_OUT = 4401
NOT_UNDERSTOOD = 4400


class _HungUp(Exception):
    """The browser is gone: nothing can be said to it any more."""


class LiveConsumer(AsyncWebsocketConsumer):
    """One tab."""

    tick_s = 1.0
    heartbeat_s = 5.0
    recheck_s = 15.0

    async def connect(self) -> None:
        """Start the writer, which greets."""
        self.subscriptions: dict[str, Subscription] = {}
        self.wanted: dict[str, int | None] = {}
        self.wake = asyncio.Event()
        self.writer: asyncio.Task[None] | None = None
        await self.accept()
        measures().count("socket_clients")
        _tell_of_process()
        user = self.scope["user"]
        if not user.is_authenticated:
            await self.close(SIGNED_OUT)
            return
        self.user = await database_sync_to_async(User.objects.get)(pk=user.pk)
        self.writer = asyncio.create_task(self._write())

    async def disconnect(self, code: int) -> None:
        """Stop the writer and leave every group."""
        measures().count("socket_clients", -1)
        _tell_of_process()
        if self.writer is not None:
            self.writer.cancel()
            with suppress(asyncio.CancelledError):
                await self.writer
        for name in self.subscriptions:
            with suppress(RedisError, OSError):
                await self.channel_layer.group_discard(name, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Take a request; the writer answers it."""
        request = _request(text_data)
        if request is None:
            await self.close(NOT_UNDERSTOOD)
            return
        operation, topics = request
        if operation == "sub":
            self.wanted.update(topics)
            self.wake.set()
            return
        for name in topics:
            self.wanted.pop(name, None)
            await self._leave(name)

    async def live_message(self, message: dict[str, Any]) -> None:
        """Hand what the channel layer brought to its subscription; never waits for the browser."""
        subscription = self.subscriptions.get(message["t"])
        if subscription is not None:
            subscription.receive(message)
            if subscription.is_urgent:
                self.wake.set()

    # ---- the writer

    async def _write(self) -> None:
        try:
            await self._write_for_ever()
        except asyncio.CancelledError:
            raise
        except _HungUp:  # `disconnect` is on its way
            return
        except Exception:  # the page must not look live with a dead writer: end the socket
            log.exception("live: the writer of a socket failed")
            await self.close(1011)
            raise

    async def _write_for_ever(self) -> None:
        await self._say(
            {"k": "hello", "ts": now_ms(), "user": self.user.get_username(), "build": _build()}
        )
        clock = asyncio.get_running_loop().time
        tick, beat, recheck = (clock() + s for s in (self.tick_s, self.heartbeat_s, self.recheck_s))
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(tick, beat, recheck) - clock())):
                    await self.wake.wait()
            self.wake.clear()
            now = clock()
            if now >= recheck:
                recheck = now + self.recheck_s
                if not await self._recheck():
                    return
            await self._send_urgent(retry=now >= tick)
            if now >= tick:
                tick = now + self.tick_s
                await self._send_patches()
            if now >= beat:
                beat = now + self.heartbeat_s
                await self._beat()

    async def _send_urgent(self, *, retry: bool) -> None:
        """Join what is wanted; send snapshots, events, fragments and operations."""
        try:
            await self._join_wanted()
            for subscription in list(self.subscriptions.values()):
                if subscription.wants_snapshot:
                    await self._send_snapshot(subscription)
                for message in subscription.urgent():
                    await self._say(message)
                if subscription.topic.family is Family.OPERATION:
                    await self._say(subscription.tick())
        except (RedisError, OSError) as error:
            # What could not be read stays wanted: the next tick tries again.
            if retry:
                log.warning("live: no snapshot for %s: %s", self.user, error)

    async def _send_patches(self) -> None:
        for subscription in list(self.subscriptions.values()):
            await self._say(subscription.tick())

    async def _beat(self) -> None:
        """Say that all is well, if it is."""
        following = [one for one in self.subscriptions.values() if not one.wants_snapshot]
        try:
            seqs = await _in_thread(latest_store().seqs, [one.topic for one in following])
        except (RedisError, OSError) as error:
            log.warning("live: no heartbeat for %s: %s", self.user, error)
            return
        for subscription, seq in zip(following, seqs, strict=True):
            subscription.compare(seq)
            if subscription.wants_snapshot:
                self.wake.set()
        await self._say({"k": "hb", "ts": now_ms()})

    async def _recheck(self) -> bool:
        """Look the person up again; False when the socket had to be closed."""
        session = self.scope.get("session")
        key = session.session_key if session is not None else None
        user = await database_sync_to_async(visibility.signed_in)(self.user.pk, key)
        if user is None:
            await self.close(SIGNED_OUT)
            return False
        self.user = user
        topics = [one.topic for one in self.subscriptions.values()]
        heard = await database_sync_to_async(visibility.allowed)(user, topics)
        for topic in topics:
            if topic.name not in heard:
                await self._refuse(topic.name)
        await self._refresh_fleet()
        return True

    async def _refresh_fleet(self) -> None:
        """Ask again whose rows may be seen; a change shows as a snapshot."""
        filtered = [one for one in self.subscriptions.values() if one.fleet is not None]
        if not filtered:
            return
        visible = await database_sync_to_async(visibility.fleet_of)(self.user)
        for subscription in filtered:
            if subscription.fleet is not None and visible != subscription.fleet.visible:
                subscription.want_snapshot()
                self.wake.set()

    async def _join_wanted(self) -> None:
        topics = {name: parse(name) for name in self.wanted}
        known = [topic for topic in topics.values() if topic is not None]
        if topics:
            heard = await database_sync_to_async(visibility.allowed)(self.user, known)
        for name, topic in topics.items():
            full = len(self.subscriptions) >= MAX_TOPICS and name not in self.subscriptions
            if topic is None or name not in heard or full:
                await self._refuse(name)
            else:
                await self.channel_layer.group_add(name, self.channel_name)
                self._follow(topic)

    def _follow(self, topic: Topic) -> None:
        if topic.name not in self.wanted:
            return  # the browser changed its mind meanwhile
        resume_at = self.wanted.pop(topic.name)
        self.subscriptions[topic.name] = Subscription(topic, resume_at)

    async def _send_snapshot(self, subscription: Subscription) -> None:
        if subscription.topic.family in OF_JOBS:
            visible = await database_sync_to_async(visibility.fleet_of)(self.user)
            subscription.fleet = view_of(subscription.topic, visible)
        latest = await _in_thread(latest_store().get, subscription.topic)
        await self._say(subscription.snapshot(latest, now_ms()))

    async def _refuse(self, name: str) -> None:
        self.wanted.pop(name, None)
        await self._leave(name)
        await self._say({"k": "gone", "t": name})

    async def _leave(self, name: str) -> None:
        if self.subscriptions.pop(name, None) is not None:
            with suppress(RedisError, OSError):
                await self.channel_layer.group_discard(name, self.channel_name)

    async def _say(self, message: Payload | None) -> None:
        if message is None:
            return
        text = json.dumps(message, separators=(",", ":"), allow_nan=False)
        try:
            await self.send(text)
        except OSError as error:  # ASGI's word for a closed connection
            raise _HungUp from error


async def _in_thread(function: Any, *args: Any) -> Any:
    """Run what waits for Redis apart from the one thread that the ORM uses."""
    return await sync_to_async(function, thread_sensitive=False)(*args)


def _tell_of_process() -> None:
    """Let it be told how many tabs there are; no tab waits until the store has it."""
    asyncio.get_running_loop().run_in_executor(None, tell_of_process)


def _request(text: str | None) -> tuple[str, dict[str, int | None]] | None:
    """The operation and its topics; None when it is not of the protocol."""
    if text is None or len(text) > MAX_MESSAGE_CHARS:
        return None
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):  # too deep for the parser
        return None
    match message:
        case {"op": "sub", "topics": dict(topics)}:
            return "sub", {
                name: seq if isinstance(seq, int) else None for name, seq in topics.items()
            }
        case {"op": "unsub", "topics": list(names)}:
            return "unsub", {name: None for name in names if isinstance(name, str)}
        case _:
            return None


def _build() -> str:
    """What the browser compares with its page, to offer a reload after an upgrade."""
    return str(getattr(staticfiles_storage, "manifest_hash", ""))
