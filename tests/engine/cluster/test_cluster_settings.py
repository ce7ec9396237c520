"""Settings of a whole cluster."""

import pytest

from engine.cluster.settings.cluster_settings import Heartbeats, heartbeats_of, parse_settings
from engine.errors import ConfigError


def test_heartbeats_are_set_under_flinks_names():
    settings = parse_settings(["heartbeat.interval=10 s", "heartbeat.timeout=50000"])
    assert heartbeats_of(settings) == Heartbeats(10_000, 50_000)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("heartbeat.timeout", r"must be NAME=VALUE: got 'heartbeat.timeout'; pass e.g. -D"),
        ("heartbeat.timout=1s", r"is not known, .*; did you mean heartbeat.timeout\?"),
        ("colour=red", r"is not known, .*; known are heartbeat.interval, heartbeat.timeout"),
    ],
)
def test_a_setting_that_would_have_no_effect_is_refused(given, sentence):
    with pytest.raises(ConfigError, match=sentence):
        parse_settings([given])


@pytest.mark.parametrize("timeout", ["1999ms", "0"])
def test_a_single_late_beat_must_not_lose_a_task_manager(timeout):
    with pytest.raises(ConfigError, match=r"must be at least twice heartbeat\.interval"):
        heartbeats_of({"heartbeat.timeout": timeout})
