"""The InfluxDB reporter: every metric as points, while jobs never notice.

    event loop ──samples, every interval──▶ points ──▶ buffer, bounded ──▶ thread ──▶ /api/v2/write

HEADWATER_METRICS_URL        where to; without it there is no reporter
HEADWATER_METRICS_TOKEN      never logged
HEADWATER_METRICS_ORG        headwater
HEADWATER_METRICS_BUCKET     metrics
HEADWATER_METRICS_INTERVAL   10s

Shapes   one point per thing: measurement `headwater_<scope>`, its labels as tags, Flink's names as
         fields, all of them floats.
Errors   a server that is away or busy is asked again, later and later, and points wait: the newest
         ones, the oldest give way. Points that it refuses are dropped. Both are counted in
         `reporterPointsDropped`, and told once in the log until it works again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import urllib3
from influxdb_client.client.exceptions import InfluxDBError
from influxdb_client.client.influxdb_client import InfluxDBClient
from influxdb_client.client.write.point import Point
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException

from engine.clock import now_micros
from engine.durations import parse_duration
from engine.elements import Micros
from engine.errors import ConfigError
from engine.rest.model.metrics import Sample

log = logging.getLogger(__name__)

Take = Callable[[], Awaitable[Iterable[Sample]]]

ORG, BUCKET = "headwater", "metrics"

CHUNK = 5_000
"""Points in one request: the size that InfluxDB's documentation recommends."""

MOST = 100_000
"""Points that wait at most, some 20 MB: minutes of a small cluster."""

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
TIMEOUT_MS = 10_000
CLOSE_S = 2.0
AGAIN = (408, 429)
"""Refusals of the moment, beside everything from 500 on."""


@dataclass(frozen=True, slots=True)
class InfluxSettings:
    """Where points go."""

    url: str
    token: str
    org: str = ORG
    bucket: str = BUCKET
    interval_s: float = 10.0

    def __repr__(self) -> str:
        return f"InfluxSettings({self.address}, bucket {self.bucket})"

    @property
    def address(self) -> str:
        """The URL without what only the server should know."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")

    @classmethod
    def taken_from(cls, environment: MutableMapping[str, str]) -> InfluxSettings | None:
        """What the environment says; None when it names no server. Raises ConfigError.

        The token is taken out of it: user code does not inherit it.
        """
        token = environment.pop("HEADWATER_METRICS_TOKEN", "")
        url = environment.get("HEADWATER_METRICS_URL", "").strip()
        if not url:
            return None
        if urlsplit(url).scheme not in ("http", "https"):
            msg = "HEADWATER_METRICS_URL must be an http address; set e.g. http://127.0.0.1:8086"
            raise ConfigError(msg)
        interval = environment.get("HEADWATER_METRICS_INTERVAL", "10s")
        seconds = parse_duration(interval, "HEADWATER_METRICS_INTERVAL") / 1_000_000
        if seconds < 1:
            msg = f"HEADWATER_METRICS_INTERVAL must be at least 1s: got {interval!r}"
            raise ConfigError(msg)
        return cls(
            url,
            token,
            environment.get("HEADWATER_METRICS_ORG", ORG),
            environment.get("HEADWATER_METRICS_BUCKET", BUCKET),
            seconds,
        )


class Buffer:
    """Points that wait, oldest first, at most so many. Any thread."""

    def __init__(self, most: int = MOST) -> None:
        self.dropped = 0
        """Points that were lost, for want of room or because they were refused."""
        self.news = threading.Event()
        self._waiting: deque[str] = deque()
        self._most = most
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, points: Sequence[str]) -> None:
        """Keep points; the oldest give way when there is no room."""
        with self._changing:
            self._waiting.extend(points)
            while len(self._waiting) > self._most:
                self._waiting.popleft()
                self.dropped += 1
        self.news.set()

    def take(self) -> list[str]:
        """Take the oldest chunk; nobody else does."""
        with self._changing:
            self.news.clear()
            return [self._waiting.popleft() for _ in range(min(CHUNK, len(self._waiting)))]

    def put_back(self, points: Sequence[str]) -> None:
        """Keep a chunk that could not be sent, as far as there is room by now."""
        with self._changing:
            room = max(0, self._most - len(self._waiting))
            self.dropped += max(0, len(points) - room)
            self._waiting.extendleft(reversed(points[-room:] if room else []))

    def drop(self, points: Sequence[str]) -> None:
        """Count points that nobody will take."""
        with self._changing:
            self.dropped += len(points)


class InfluxReporter:
    """Sends the metrics of one job manager."""

    def __init__(self, settings: InfluxSettings) -> None:
        self.buffer = Buffer()
        self._settings = settings
        self._over = threading.Event()
        self._complained = False
        self._thread = threading.Thread(target=self._send_forever, name="influx", daemon=True)

    async def run(self, take: Take) -> None:
        """Measure at every interval, for ever."""
        self._thread.start()
        while True:
            await asyncio.sleep(self._settings.interval_s)
            samples, now = await take(), now_micros()
            self.buffer.add(await asyncio.to_thread(points_of, samples, now))

    def close(self) -> None:
        """Send what there is, if that is quick; then end."""
        self._over.set()
        self.buffer.news.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_S)

    def _send_forever(self) -> None:
        settings, wait_s = self._settings, FIRST_WAIT_S
        with InfluxDBClient(
            settings.url, settings.token, org=settings.org, timeout=TIMEOUT_MS, retries=False
        ) as client:
            api = client.write_api(write_options=SYNCHRONOUS)
            while True:
                points = self.buffer.take()
                if points:
                    if self._send(api.write, points):
                        wait_s = FIRST_WAIT_S
                        continue
                    if self._over.wait(wait_s):
                        return
                    wait_s = min(2 * wait_s, LONGEST_WAIT_S)
                elif self._over.is_set():
                    return
                else:
                    self.buffer.news.wait()

    def _send(self, write: Callable[..., object], points: Sequence[str]) -> bool:
        """Send a chunk; False when it has to be tried again, later."""
        settings = self._settings
        try:
            write(settings.bucket, settings.org, "\n".join(points), write_precision="us")
        except ApiException as error:
            status = error.status or 0
            self._complain(f"HTTP {status} {error.reason}")
            if 400 <= status < 500 and status not in AGAIN:
                self.buffer.drop(points)
                return True
        except (InfluxDBError, urllib3.exceptions.HTTPError, OSError) as error:
            self._complain(type(error).__name__)
        else:
            if self._complained:
                log.info("metrics are written to %s again", settings.address)
            self._complained = False
            return True
        self.buffer.put_back(points)
        return False

    def _complain(self, reason: str) -> None:
        if not self._complained:
            log.warning("metrics are not written to %s: %s", self._settings.address, reason)
        self._complained = True


def points_of(samples: Iterable[Sample], now: Micros) -> list[str]:
    r"""Line protocol: one point per thing that is measured.

    >>> from engine.rest.model.metrics import METRICS, Scope
    >>> restarts, uptime = METRICS[Scope.JOB, "numRestarts"], METRICS[Scope.JOB, "uptime"]
    >>> labels = {"job": "my flights"}
    >>> points_of([Sample(restarts, labels, 2), Sample(uptime, labels, 54_433)], Micros(7))
    ['headwater_job,job=my\\ flights numRestarts=2,uptime=54433 7']
    """
    things: defaultdict[tuple[str, tuple[tuple[str, str], ...]], dict[str, float]]
    things = defaultdict(dict)
    for sample in samples:
        name = sample.extra.get("counter", sample.metric.name)
        thing = sample.metric.scope.value, tuple(sample.labels.items())
        things[thing][name] = float(sample.value)
    return [_point(scope, labels, fields, now) for (scope, labels), fields in things.items()]


def _point(
    scope: str, labels: Iterable[tuple[str, str]], fields: Mapping[str, float], now: Micros
) -> str:
    point = Point(f"headwater_{scope}").time(now, write_precision="us")  # type: ignore[no-untyped-call]
    for label, value in labels:
        point.tag(label, value)
    for name, number in fields.items():
        point.field(name, number)
    return str(point.to_line_protocol())
