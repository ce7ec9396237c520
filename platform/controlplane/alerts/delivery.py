"""Telling people: each delivery is tried until it is told, or given up after a day.

1. What is due is taken by compare-and-set: its next try is moved on before it is made.
2. It is sent, outside any transaction.
3. What came of it is written.

Guarantee  at least once: a process that is killed between 2 and 3 sends again, so the body
           names the alert and the news. Of two processes one sends.
"""

from __future__ import annotations

import json
import logging
from datetime import datetime, timedelta
from typing import Any

import httpx
from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from controlplane.alerts import messages
from controlplane.alerts.addresses import (
    Forbidden,
    Resolve,
    addresses_of,
    checked_address,
    checked_url,
    private_allowed,
)
from controlplane.alerts.models import Delivery, Route

log = logging.getLogger(__name__)

TIMEOUT_S = 5.0
DELAYS_S = (10, 30, 120, 600, 1_800, 3_600)
MOST_TRIES = 30
"""A day of them."""
AT_ONCE = 50


class NotTold(Exception):
    """The try failed; the text is why, and `for_good` whether another is pointless."""

    def __init__(self, reason: str, *, for_good: bool = False) -> None:
        super().__init__(reason)
        self.for_good = for_good


def deliver_due(
    now: datetime,
    transport: httpx.BaseTransport | None = None,
    resolve: Resolve = addresses_of,
) -> int:
    """Try every delivery that is due; how many were told."""
    due = Delivery.objects.filter(state=Delivery.State.WAITING, due_at__lte=now).order_by("due_at")
    rows = due.select_related("alert__rule__team", "alert__job", "route")[:AT_ONCE]
    return sum(_try(delivery, now, transport, resolve) for delivery in rows)


def _try(
    delivery: Delivery, now: datetime, transport: httpx.BaseTransport | None, resolve: Resolve
) -> bool:
    # Step 1.
    delay = timedelta(seconds=DELAYS_S[min(delivery.attempts, len(DELAYS_S) - 1)])
    mine = Delivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts, state="waiting")
    if not mine.update(attempts=delivery.attempts + 1, due_at=now + delay):
        return False
    # Step 2.
    try:
        _send(delivery, transport, resolve)
    except NotTold as failure:
        over = failure.for_good or delivery.attempts + 1 >= MOST_TRIES
        state = Delivery.State.FAILED if over else Delivery.State.WAITING
        Delivery.objects.filter(pk=delivery.pk).update(state=state, error=str(failure)[:300])
        log.warning("alert %s not told to %s: %s", delivery.alert_id, delivery.route, failure)
        return False
    # Step 3.
    told = Delivery.objects.filter(pk=delivery.pk)
    told.update(state=Delivery.State.SENT, error="", sent_at=now)
    return True


def _send(delivery: Delivery, transport: httpx.BaseTransport | None, resolve: Resolve) -> None:
    alert, route, news = delivery.alert, delivery.route, delivery.news
    match route.kind:
        case Route.Kind.EMAIL:
            _mail(route.target, messages.sentence(alert, news), messages.as_json(alert, news))
        case Route.Kind.SLACK:
            _post(route, messages.as_slack(alert, news), transport, resolve)
        case _:
            _post(route, messages.as_json(alert, news), transport, resolve)


def _mail(target: str, sentence: str, facts: dict[str, Any]) -> None:
    lines = "\n".join(f"{name}: {value}" for name, value in facts.items())
    # Names hold no line breaks; a subject must not either.
    subject = " ".join(f"[headwater] {sentence}".split())[:200]
    body = f"{sentence}\n\n{lines}\n"
    try:
        connection = get_connection(timeout=TIMEOUT_S)
        EmailMessage(
            subject, body, settings.DEFAULT_FROM_EMAIL, [target], connection=connection
        ).send()
    except OSError as error:
        msg = f"the mail server did not take it: {error}"
        raise NotTold(msg) from error


def _post(
    route: Route, body: dict[str, Any], transport: httpx.BaseTransport | None, resolve: Resolve
) -> None:
    content = json.dumps(body, separators=(",", ":")).encode()
    try:
        private = private_allowed()
        split = checked_url(route.target, private=private)
        address = checked_address(route.target, private=private, resolve=resolve)
    except Forbidden as forbidden:
        raise NotTold(str(forbidden)) from forbidden
    host = str(split.hostname)
    # To the address that was checked, under the name that was given.
    url = httpx.URL(route.target).copy_with(host=address)
    headers = {
        "Host": split.netloc,
        "Content-Type": "application/json",
        messages.SIGNATURE: messages.signature(route.secret, content),
    }
    try:
        with httpx.Client(transport=transport, timeout=TIMEOUT_S, trust_env=False) as client:
            answer = client.post(
                url, content=content, headers=headers, extensions={"sni_hostname": host}
            )
    except httpx.HTTPError as error:
        msg = f"{host} did not answer: {error or type(error).__name__}"
        raise NotTold(msg) from error
    if not answer.is_success:
        # What a receiver refuses for good it will refuse again; the rest may pass.
        final = 400 <= answer.status_code < 500 and answer.status_code not in (408, 425, 429)
        msg = f"{host} answered {answer.status_code}"
        raise NotTold(msg, for_good=final)
