"""Logging in with a provider of single sign-on, and everything that must not log anybody in."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from joserfc.jwk import ECKey

from controlplane.access.models import Identity
from controlplane.audit.models import AuditEntry
from engine.testing.cluster import PATIENCE_S
from oidc_provider import CLIENT, SECRET, running


@pytest.fixture
def provider(settings, db):
    with running() as one:
        settings.HEADWATER_OIDC_ISSUER = one.issuer
        settings.HEADWATER_OIDC_CLIENT_ID = CLIENT
        settings.HEADWATER_OIDC_CLIENT_SECRET = SECRET
        settings.HEADWATER_OIDC_NAME = "Example"
        yield one


def there(client, then=""):
    """What the provider sends the browser back with."""
    away = client.get("/login/sso/", {"next": then})
    assert away.status_code == 302, away.content.decode()
    back = httpx.get(away.url, timeout=PATIENCE_S)
    return {
        name: one[0] for name, one in parse_qs(urlsplit(back.headers["location"]).query).items()
    }


def come_back(client, answer):
    return client.get("/login/sso/back/", answer)


def test_the_first_login_makes_a_user_without_a_team(client, provider):
    answer = come_back(client, there(client, "/replays/"))

    assert answer.url == "/replays/"
    user = User.objects.get(username="zoe")
    assert not user.has_usable_password()
    assert client.get("/jobs/").status_code == 200
    assert set(AuditEntry.objects.values_list("action", flat=True)) == {"user.add", "login.sso"}


def test_the_same_subject_is_the_same_user_whatever_they_are_called(client, provider):
    come_back(client, there(client))
    provider.claims["preferred_username"] = "zoe.new"
    other = Client()
    come_back(other, there(other))

    assert User.objects.get().username == "zoe"


def test_whoever_takes_over_a_name_is_somebody_else(client, provider, alice):
    provider.claims |= {"sub": "u-2", "preferred_username": "alice", "email": "alice@example.org"}
    come_back(client, there(client))

    assert Identity.objects.get().user.username == "alice-2"


def test_who_is_locked_out_stays_out(client, provider):
    come_back(client, there(client))
    User.objects.update(is_active=False)
    again = Client()
    answer = come_back(again, there(again))

    assert answer.status_code == 403
    assert "may not log in any more" in answer.content.decode()
    assert again.get("/jobs/").status_code == 302


def test_an_answer_that_nobody_asked_for_logs_nobody_in(client, provider):
    stolen = there(Client())
    assert come_back(client, stolen).status_code == 403
    mine = there(client)
    assert come_back(client, mine | {"state": "other"}).status_code == 403
    assert come_back(client, mine).status_code == 403  # the first answer ended it
    assert not User.objects.exists()


def test_an_answer_serves_once(client, provider):
    answer = there(client)
    come_back(client, answer)
    assert come_back(client, answer).status_code == 403


def test_a_code_of_another_login_does_not_fit_the_verifier(client, provider):
    other = there(Client())
    answer = come_back(client, there(client) | {"code": other["code"]})

    assert answer.status_code == 403
    assert "the verifier is wrong" in answer.content.decode()


@pytest.mark.parametrize(
    "bent",
    [
        {"nonce": "another"},
        {"aud": "another"},
        {"iss": "https://another.example"},
        {"exp": 1},
        {"sub": None},
        {"azp": "another", "aud": [CLIENT, "another"]},
    ],
    ids=lambda bent: next(iter(bent)),
)
def test_a_token_that_says_something_else_logs_nobody_in(client, provider, bent):
    provider.claims |= bent
    answer = come_back(client, there(client))

    assert answer.status_code == 403
    assert "ID token of single sign-on is not valid" in answer.content.decode()
    assert not User.objects.exists()


def test_a_token_signed_by_somebody_else_logs_nobody_in(client, provider):
    provider.signs_with = ECKey.generate_key("P-256")
    assert come_back(client, there(client)).status_code == 403
    assert not User.objects.exists()


def test_a_login_that_took_too_long_begins_again(client, provider):
    answer = there(client)
    session = client.session
    session["single_sign_on"]["at"] = (timezone.now() - timedelta(minutes=16)).isoformat()
    session.save()
    assert "longer than a quarter of an hour" in come_back(client, answer).content.decode()


def test_what_the_provider_says_is_passed_on_as_text(client, provider):
    state = there(client)["state"]
    answer = come_back(client, {"state": state, "error": "x", "error_description": "<b>no</b>"})
    assert answer.status_code == 403
    assert "&lt;b&gt;no&lt;/b&gt;" in answer.content.decode()


@pytest.mark.parametrize("then", ["https://evil.example/", "//evil.example", "javascript:x"])
def test_nobody_is_sent_elsewhere(client, provider, then):
    assert come_back(client, there(client, then)).url == "/jobs/"


def test_a_provider_that_calls_itself_otherwise_is_not_trusted(client, provider):
    provider.wrong_issuer = "https://another.example"
    answer = client.get("/login/sso/")
    assert answer.status_code == 502
    assert "log in by a link meanwhile" in answer.content.decode()


def test_a_provider_that_is_away_is_said_to_be(client, settings, provider):
    settings.HEADWATER_OIDC_ISSUER = "http://127.0.0.1:9"
    assert client.get("/login/sso/").status_code == 502
    settings.HEADWATER_OIDC_ISSUER = "http://provider.example"
    assert "must be an https address" in client.get("/login/sso/").content.decode()


def test_the_login_page_offers_it_when_it_is_set_up(client, provider, settings):
    assert "Sign in with Example" in client.get("/login/").content.decode()
    settings.HEADWATER_OIDC_ISSUER = ""
    assert "Sign in with" not in client.get("/login/").content.decode()
    assert client.get("/login/sso/").status_code == 404
