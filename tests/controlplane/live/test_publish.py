"""Publishing: on commit, escaped, and without harm when nobody can be reached."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from redis import RedisError

from controlplane.live import latest, topics
from controlplane.live.publish import publish, publish_html, publish_on_commit

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            "loaders": [
                ("django.template.loaders.locmem.Loader", {"row.html": "<b>{{ name }}</b>"})
            ]
        },
    }
]


@pytest.fixture
def group(settings):
    """What the sockets of topic `job.5` would get; a Redis layer would bind it to one loop."""
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    layer = get_channel_layer()
    channel = async_to_sync(layer.new_channel)()
    async_to_sync(layer.group_add)("job.5", channel)
    yield lambda: async_to_sync(layer.receive)(channel)
    async_to_sync(layer.group_discard)("job.5", channel)
    latest.latest_store().forget(topics.parse("job.5"))


def value():
    return latest.latest_store().get(topics.parse("job.5")).value


@pytest.mark.django_db(transaction=True)
def test_nobody_hears_of_what_is_rolled_back(group):
    with transaction.atomic():
        publish_on_commit("job.5", {"in": 1.0})
        transaction.set_rollback(True)
    assert value() == {}
    with transaction.atomic():
        publish_on_commit("job.5", {"in": 2.0})
        assert value() == {}
    assert group()["d"] == {"in": 2.0}


@pytest.mark.django_db(transaction=True)
def test_a_fragment_is_escaped_and_sent_on_commit(group, settings):
    settings.TEMPLATES = TEMPLATES
    with transaction.atomic():
        publish_html("job.5", "row.html", {"name": "<script>"}, "#row")
    message = group()
    assert (message["k"], message["target"]) == ("html", "#row")
    assert message["html"] == "<b>&lt;script&gt;</b>"


def test_a_fragment_in_the_fleet_must_say_which_job_it_is_about():
    with pytest.raises(ValueError, match="pass job_id"):
        publish_html("fleet", "row.html", {}, "#row")


def test_a_topic_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"no live topic has the name 'jobs\.5'"):
        publish("jobs.5", {})


def test_a_server_that_is_away_costs_a_warning_and_no_more(monkeypatch, caplog):
    class Away:
        def merge_all(self, values):
            msg = "connection refused"
            raise RedisError(msg)

    monkeypatch.setattr("controlplane.live.publish.latest_store", Away)
    publish("job.5", {"in": 1.0})
    assert "job.5 not published: connection refused" in caplog.text
