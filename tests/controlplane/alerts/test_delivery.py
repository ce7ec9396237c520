"""Telling people: signed, tried again, given up, and never into a private network unasked."""

from __future__ import annotations

import json
from datetime import timedelta

import httpx
import pytest
from django.core import mail
from django.utils import timezone

from controlplane.access.errors import Refused
from controlplane.alerts import messages
from controlplane.alerts.actions import add_route, add_rule
from controlplane.alerts.addresses import Forbidden, checked_address, checked_url
from controlplane.alerts.delivery import DELAYS_S, MOST_TRIES, deliver_due
from controlplane.alerts.models import Alert, Delivery

NOW = timezone.now()
HOOK = "https://hooks.example.org/x?y=1"


def public(host, port):
    return ["93.184.216.34"]


class Receiver(httpx.BaseTransport):
    """Answers as it is told, and keeps what came."""

    def __init__(self, *answers):
        self.answers = list(answers) or [200]
        self.requests = []

    def handle_request(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer)


@pytest.fixture
def alert(running, team, alice):
    rule = add_rule(
        team, running, alice, measure="restarts", threshold=2, for_seconds=0, severity="crit"
    )
    return Alert.objects.create(
        rule=rule, job=running, state="firing", since=NOW, fired_at=NOW, seen_at=NOW, value=3
    )


def news(alert, team, alice, kind="webhook", target=HOOK):
    route = add_route(team, alice, kind=kind, target=target)
    return Delivery.objects.create(alert=alert, route=route, news="firing", due_at=NOW)


def test_a_webhook_is_signed_and_goes_to_the_address_that_was_checked(alert, team, alice):
    delivery, receiver = news(alert, team, alice), Receiver()
    assert deliver_due(NOW, receiver, public) == 1
    (request,) = receiver.requests
    assert str(request.url) == "https://93.184.216.34/x?y=1"
    assert request.headers["Host"] == "hooks.example.org"
    body = request.read()
    wanted = messages.signature(delivery.route.secret, body)
    assert request.headers["X-Headwater-Signature"] == wanted
    told = json.loads(body)
    assert (told["job"], told["news"], told["value"]) == ("flights", "firing", 3)
    delivery.refresh_from_db()
    assert delivery.state == "sent"


def test_what_fails_is_tried_again_later_and_later_and_then_given_up(alert, team, alice):
    delivery = news(alert, team, alice)
    receiver, now, tries = Receiver(httpx.ConnectError("refused")), NOW, 0
    while delivery.state == "waiting":
        deliver_due(now, receiver, public)
        deliver_due(now, receiver, public)  # not due again yet
        tries += 1
        assert len(receiver.requests) == tries
        delivery.refresh_from_db()
        now = delivery.due_at
    assert (delivery.state, delivery.attempts) == ("failed", MOST_TRIES)
    assert delivery.error == "hooks.example.org did not answer: refused"
    assert now - NOW > timedelta(hours=20)
    assert DELAYS_S[0] < DELAYS_S[-1]


@pytest.mark.parametrize(
    ("status", "state"), [(500, "waiting"), (429, "waiting"), (404, "failed"), (302, "waiting")]
)
def test_an_answer_decides_whether_another_try_makes_sense(status, state, alert, team, alice):
    delivery = news(alert, team, alice)
    deliver_due(NOW, Receiver(status), public)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.error) == (state, f"hooks.example.org answered {status}")


def test_slack_gets_a_line_in_which_names_are_text(alert, team, alice):
    alert.job.name = "<b>&"
    text = messages.as_slack(alert, "firing")["text"]
    assert text.startswith("[crit] &lt;b&gt;&amp;: restarts in the last hour is 3 an hour, limit 2")


def test_a_mail_says_what_where_and_since_when(alert, team, alice):
    news(alert, team, alice, "email", "ops@example.org")
    assert deliver_due(NOW) == 1
    (sent,) = mail.outbox
    assert sent.to == ["ops@example.org"]
    assert sent.subject.startswith("[headwater] flights: restarts in the last hour is 3")


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.9", "169.254.169.254", "::1", "fd00::1", "0.0.0.0"],
)
def test_a_private_address_is_not_asked(address, alert, team, alice):
    delivery, receiver = news(alert, team, alice), Receiver()
    deliver_due(NOW, receiver, lambda host, port: ["93.184.216.34", address])
    delivery.refresh_from_db()
    assert receiver.requests == []
    assert f"is in a private network: got {address}" in delivery.error


def test_private_addresses_are_asked_where_that_is_allowed(alert, team, alice, monkeypatch):
    monkeypatch.setenv("HEADWATER_WEBHOOKS_PRIVATE", "1")
    news(alert, team, alice, target="http://127.0.0.1:9/x")
    assert deliver_due(NOW, Receiver(), lambda host, port: [host]) == 1


@pytest.mark.parametrize(
    "target",
    ["http://example.org/", "ftp://example.org/", "https://", "https://u:p@example.org/", "x"],
)
def test_an_address_that_cannot_be_a_webhook_is_refused(target, team, alice):
    with pytest.raises(Refused, match="must be an https address"):
        add_route(team, alice, kind="webhook", target=target)
    with pytest.raises(Forbidden):
        checked_url(target, private=False)


def test_a_mail_address_that_is_none_is_refused(team, alice):
    with pytest.raises(Refused, match="email address cannot be used"):
        add_route(team, alice, kind="email", target="nobody")


def test_a_name_without_an_address_says_so():
    with pytest.raises(Forbidden, match="has no address"):
        checked_address("https://nowhere.invalid/", private=False)
