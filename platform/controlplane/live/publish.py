"""Publishing: merge into the latest value, then tell whoever listens.

    action ── publish_on_commit ──▶ latest value ──▶ channel layer group ──▶ every open socket

Guarantee  none, and none is needed: the truth is in the database, sockets notice gaps, and a page
           works by reload. So a server that is away costs a warning in the log, never an action.
Order    inside a transaction use `publish_on_commit`: nobody hears of what is rolled back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from channels.layers import get_channel_layer
from django.db import transaction
from django.template.loader import render_to_string
from redis import RedisError

from controlplane.live.latest import latest_store
from controlplane.live.topics import Family, Payload, Shape, Topic, parse
from controlplane.moments import now_ms

log = logging.getLogger(__name__)


def publish_on_commit(topic: str, value: Mapping[str, Any]) -> None:
    """Publish once the present transaction is committed; at once outside of one."""
    kept = dict(value)
    transaction.on_commit(lambda: publish(topic, kept), robust=True)


def publish(topic: str, value: Mapping[str, Any]) -> None:
    """Publish now; not to be called from a coroutine."""
    async_to_sync(apublish)(topic, value)


async def apublish(topic: str, value: Mapping[str, Any]) -> None:
    """Publish now: a patch of a table or record, or an event of a log."""
    await apublish_all([(topic, value)])


async def apublish_all(values: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Publish many now; the same as one after the other, and much cheaper."""
    known = [(_topic(name), dict(value)) for name, value in values]
    if not known:
        return
    try:
        # Thread-safe clients and stores: no need to wait for the thread that Django's ORM uses.
        merge_all = sync_to_async(latest_store().merge_all, thread_sensitive=False)
        for (topic, _), change in zip(known, await merge_all(known), strict=True):
            if change is not None:
                kind = "event" if topic.shape is Shape.LOG else "patch"
                news = {"k": kind, "seq": change.seq, "ts": now_ms(), "d": change.patch}
                await _send(topic, news)
    except (RedisError, OSError) as error:
        names = values[0][0] if len(values) == 1 else f"{values[0][0]} and {len(values) - 1} others"
        log.warning("live: topic %s not published: %s", names, error)


def publish_html(
    topic: str,
    template: str,
    context: Mapping[str, Any],
    target: str,
    *,
    swap: str = "outerMorph",
    job_id: int | None = None,
) -> None:
    """Send a fragment to the pages that listen, once the present transaction is committed.

    `job_id` says whom a fragment in the fleet is about: only who may see that job gets it.
    """
    known = _topic(topic)
    if known.family is Family.FLEET and job_id is None:
        msg = "a fragment in the fleet needs the job it is about: pass job_id"
        raise ValueError(msg)
    message = {
        "k": "html",
        "target": target,
        "swap": swap,
        "html": render_to_string(template, dict(context)),
        "job": None if job_id is None else str(job_id),
    }
    transaction.on_commit(lambda: _send_quietly(known, message), robust=True)


def _send_quietly(topic: Topic, message: Payload) -> None:
    try:
        async_to_sync(_send)(topic, message)
    except (RedisError, OSError) as error:
        log.warning("live: fragment for %s not published: %s", topic.name, error)


async def _send(topic: Topic, message: Payload) -> None:
    layer = get_channel_layer()  # type: ignore[no-untyped-call]
    await layer.group_send(topic.name, {"type": "live.message", "t": topic.name, **message})


def _topic(name: str) -> Topic:
    topic = parse(name)
    if topic is None:
        msg = f"no live topic has the name {name!r}; see controlplane/live/topics.py"
        raise ValueError(msg)
    return topic
