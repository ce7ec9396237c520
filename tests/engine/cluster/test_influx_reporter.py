"""Metrics as points: what is kept, sent, dropped and counted, while nobody waits."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator

import pytest

from engine.cluster.answers.influx_reporter import (
    LONGEST_WAIT_S,
    InfluxReporter,
    InfluxSettings,
    points_of,
)
from engine.cluster.answers.point_buffer import CHUNK, MOST, Buffer
from engine.elements import Micros
from engine.errors import ConfigError
from engine.rest.model.metrics import COUNTED, METRICS, Sample, Scope
from engine.testing.cluster import PATIENCE_S
from fixtures.point_server import PointServer

RESTARTS = METRICS[Scope.JOB, "numRestarts"]
TOKEN = "s3cret-t0ken"


@pytest.fixture
def server() -> Iterator[PointServer]:
    with PointServer().serving() as server:
        yield server


def test_one_thing_is_one_point_with_all_that_is_known_of_it():
    operator = {"job": "a b", "operator": "x,y=z"}
    samples = [
        Sample(COUNTED, operator, 3, {"counter": "bad rows"}),
        Sample(METRICS[Scope.OPERATOR, "numRecordsIn"], operator, 5),
        Sample(RESTARTS, {"job": "a b"}, 1),
    ]
    assert points_of(samples, Micros(9)) == [
        "headwater_operator,job=a\\ b,operator=x\\,y\\=z bad\\ rows=3,numRecordsIn=5 9",
        "headwater_job,job=a\\ b numRestarts=1 9",
    ]


def test_when_there_is_no_room_the_oldest_give_way_and_are_counted():
    buffer = Buffer(most=3)
    buffer.add(["1", "2"])
    buffer.add(["3", "4", "5"])
    assert (buffer.take(), buffer.dropped) == (["3", "4", "5"], 2)


def test_a_chunk_that_comes_back_stands_before_what_came_meanwhile():
    buffer = Buffer(most=3)
    buffer.add(["1", "2"])
    chunk = buffer.take()
    buffer.add(["3", "4"])
    buffer.put_back(chunk)
    assert (buffer.take(), buffer.dropped) == (["2", "3", "4"], 1)


def test_no_more_than_a_chunk_is_taken_at_a_time():
    buffer = Buffer(most=2 * CHUNK)
    buffer.add(["x"] * (CHUNK + 1))
    assert [len(buffer.take()), len(buffer.take())] == [CHUNK, 1]


async def report(server: PointServer, until, url: str = "") -> InfluxReporter:
    """Run a reporter until something is so."""
    reporter = InfluxReporter(InfluxSettings(url or server.url, TOKEN, interval_s=0.01))

    async def take() -> list[Sample]:
        return [Sample(RESTARTS, {"job": "a"}, 2)]

    running = asyncio.create_task(reporter.run(take))
    async with asyncio.timeout(PATIENCE_S):
        while not until(reporter):
            await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.to_thread(reporter.close)
    return reporter


async def test_points_arrive_and_nothing_is_dropped(server: PointServer):
    reporter = await report(server, lambda _: len(server.points) >= 2)
    assert {series for series, _ in server.points} == {"headwater_job,job=a"}
    assert set(server.points.values()) == {"numRestarts=2"}
    assert server.requests[0][0] == ("/api/v2/write?org=headwater&bucket=metrics&precision=us")
    assert (reporter.buffer.dropped, len(reporter.buffer)) == (0, 0)


async def test_what_a_server_refuses_is_dropped_counted_and_told_once_without_the_token(
    server: PointServer, caplog: pytest.LogCaptureFixture
):
    server.answers = [401] * 3
    with caplog.at_level(logging.INFO, "engine"):
        reporter = await report(server, lambda _: len(server.points) >= 1)
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        f"metrics are not written to {server.url}: HTTP 401 Unauthorized",
        f"metrics are written to {server.url} again",
    ]
    assert reporter.buffer.dropped >= 3
    assert TOKEN not in caplog.text + repr(InfluxSettings(server.url, TOKEN))


async def test_while_a_server_is_away_points_wait(caplog: pytest.LogCaptureFixture):
    server = PointServer()
    server.server_close()
    reporter = await report(server, lambda reporter: len(reporter.buffer) >= 3, server.url)
    assert reporter.buffer.dropped == 0
    assert caplog.text.count("metrics are not written") == 1


class Outage:
    """A server that is away for a while, and a clock that jumps to whatever comes next."""

    def __init__(self, away_s: range) -> None:
        self.now_s = 0.0
        self.tries_s: list[float] = []
        self.taken: list[str] = []
        self._away_s = away_s

    def clock(self) -> Micros:
        return Micros(int(self.now_s * 1_000_000))

    def write(self, _bucket: str, _org: str, lines: str, **_precision: str) -> None:
        if self._away_s.start <= self.now_s < self._away_s.stop:
            self.tries_s.append(self.now_s)
            raise OSError
        self.taken += lines.split("\n")

    def play(self, reporter: InfluxReporter, points: int, until_s: int) -> Iterator[float]:
        """Measure every ten seconds, and send as the thread does; what it told, every ten."""
        due_s = 0.0
        for at in range(0, until_s, 10):
            self.now_s = float(at)
            reporter.buffer.add([f"{at}-{number}" for number in range(points)])
            while due_s < at + 10:
                self.now_s = max(due_s, float(at))
                wait_s = reporter.step(self.write)
                due_s = at + 10 if wait_s is None else self.now_s + wait_s
            yield reporter.figures()["reporterSilentTime"]


@pytest.mark.parametrize(("points", "lost"), [(100, 0), (2_500, 61 * 2_500 - MOST)])
def test_a_server_may_be_away_for_ten_minutes(points: int, lost: int):
    """What a cluster measures meanwhile comes later, or is counted: the oldest of it."""
    outage = Outage(range(100, 700))
    reporter = InfluxReporter(InfluxSettings("http://influx", TOKEN), outage.clock)
    silent_ms = list(outage.play(reporter, points, until_s=1_000))
    assert reporter.buffer.dropped == lost
    added = [f"{at}-{number}" for at in range(0, 1_000, 10) for number in range(points)]
    before = 10 * points
    assert outage.taken == added[:before] + added[before + lost :]
    assert max(silent_ms) >= 590_000
    assert silent_ms[-1] == 0


def test_a_server_that_is_away_is_asked_less_and_less_often():
    outage = Outage(range(100, 700))
    reporter = InfluxReporter(InfluxSettings("http://influx", TOKEN), outage.clock)
    list(outage.play(reporter, 1, until_s=1_000))
    waits = [later - at for at, later in itertools.pairwise(outage.tries_s)]
    assert waits[:6] == [1, 2, 4, 8, 16, 32]
    assert set(waits[6:]) == {LONGEST_WAIT_S}


def test_settings_come_from_the_environment_which_keeps_no_token():
    environment = {
        "HEADWATER_METRICS_URL": "http://me:pw@influx:8086",
        "HEADWATER_METRICS_TOKEN": TOKEN,
        "HEADWATER_METRICS_INTERVAL": "30s",
    }
    settings = InfluxSettings.taken_from(environment)
    assert settings is not None
    assert (settings.token, settings.interval_s, settings.bucket) == (TOKEN, 30.0, "metrics")
    assert settings.address == "http://influx:8086"
    assert TOKEN not in environment.values()
    assert InfluxSettings.taken_from({}) is None


@pytest.mark.parametrize(
    "wrong", [{"HEADWATER_METRICS_URL": "influx"}, {"HEADWATER_METRICS_INTERVAL": "10ms"}]
)
def test_settings_that_are_none_are_refused(wrong: dict[str, str]):
    with pytest.raises(ConfigError, match="HEADWATER_METRICS_"):
        InfluxSettings.taken_from({"HEADWATER_METRICS_URL": "http://influx"} | wrong)
