"""Quix Streams: its own windows and state (RocksDB), on JSON messages of a Kafka topic.

    librdkafka's mock broker, a process of its own --> Application: decode, window --> results

Counts   from the first message that is handled to the last; all messages are there before.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE, Popen
from typing import Any

import orjson
from confluent_kafka import Producer
from quixstreams import Application
from quixstreams.dataframe.windows.aggregations import Count, Sum
from quixstreams.models.topics import TopicConfig
from quixstreams.models.topics.admin import TopicAdmin

from benchmarks.peers.answer import Order, order, say
from benchmarks.peers.totals import Totals, running, totals
from benchmarks.peers.work import BOUND, FAR, GAP, SIZE, SLIDE

TOPIC = "events"
BROKER = """
import sys
from confluent_kafka import Producer
broker = Producer({"bootstrap.servers": "none:1", "test.mock.num.brokers": 1, "log_level": 0})
print(broker.list_topics(timeout=10).brokers[1], flush=True)
sys.stdin.read()
"""
KEPT = {"retention.ms": "604800000"}
WAIT_S = 20


@contextmanager
def broker() -> Iterator[str]:
    """Run a broker in memory; it ends with its input."""
    with Popen([sys.executable, "-c", BROKER], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split("/")[0].strip()
        assert process.stdin is not None
        process.stdin.close()


def configs(admin: TopicAdmin, names: list[str], timeout: float = WAIT_S) -> dict[str, Any]:
    """Say what the topics are like: the mock broker does not answer that question."""
    found = {}
    for name in names:  # to ask for a topic by its name also makes it
        topic = admin.admin_client.list_topics(name, timeout=timeout).topics[name]
        found[name] = TopicConfig(len(topic.partitions), 1, extra_config=dict(KEPT))
    return found


def send(asked: Order, address: str) -> int:
    """Put all events into one partition, and one at the end that closes the windows."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50})
    columns = (column.tolist() for column in asked.work.events(0, asked.rows))
    rows = list(zip(*columns, strict=True))
    if asked.work.name != "running":
        rows.append((0, FAR, 0.0))
    for key, due, value in rows:
        message = orjson.dumps({"time": due, "value": value})
        producer.produce(TOPIC, message, str(key).encode(), partition=0)
        producer.poll(0)
    producer.flush(WAIT_S)
    return len(rows)


def summed(event: dict[str, Any], state: Any) -> float:
    total: float = state.get("total", 0.0) + event["value"]
    state.set("total", total)
    return total


def windows(events: Any, name: str) -> Any:
    if name == "sliding":
        return events.hopping_window(SLIDE, SIZE, grace_ms=BOUND)
    if name == "session":
        return events.session_window(GAP, grace_ms=BOUND)
    return events.tumbling_window(SIZE, grace_ms=BOUND)


def job(app: Application, name: str, found: list[Any]) -> None:
    topic = app.topic(
        TOPIC,
        key_deserializer="bytes",
        value_deserializer="json",
        timestamp_extractor=lambda value, headers, at, kind: value["time"],
    )
    events = app.dataframe(topic)
    if name == "running":
        out = events.apply(summed, stateful=True)
    else:
        sums = windows(events, name).agg(n=Count(), sum=Sum("value"))
        out = sums.final(closing_strategy="partition")
    out.update(lambda row, key, at, headers: found.append((int(key), row)), metadata=True)


def output(name: str, found: list[Any]) -> Totals:
    if name == "running":
        return running(*zip(*found, strict=True))
    return totals(
        (key, row["start"], row["n"], row["sum"]) for key, row in found if row["start"] < FAR
    )


def main() -> None:
    logging.disable(logging.WARNING)
    asked, found = order(), []
    TopicAdmin.inspect_topics = configs
    TopicAdmin.create_topics = lambda *_, **__: None
    handled: list[tuple[float, float]] = []

    def on_message(topic: str, partition: int, offset: int) -> None:
        if offset in (0, messages - 1):
            handled.append((time.perf_counter(), time.process_time()))
        if offset == messages - 1:
            app.stop()

    with broker() as address:
        messages = send(asked, address)
        app = Application(
            address,
            consumer_group="peers",
            auto_offset_reset="earliest",
            state_dir=asked.folder / "state",
            loglevel="ERROR",
            on_message_processed=on_message,
            broker_availability_timeout=0,
        )
        job(app, asked.work.name, found)
        app.run(collect=False)
    seconds, cpu = (last - first for first, last in zip(handled[0], handled[-1], strict=True))
    say(seconds, cpu, output(asked.work.name, found))


if __name__ == "__main__":
    main()
