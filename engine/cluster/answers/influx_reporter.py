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
         `reporterSilentTime` tells for how long none was taken, `reporterPointsWaiting` how many
         wait.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict
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
from engine.cluster.answers.point_buffer import Buffer
from engine.durations import parse_duration
from engine.elements import Micros
from engine.errors import ConfigError
from engine.rest.model.metrics import Sample

log = logging.getLogger(__name__)

Take = Callable[[], Awaitable[Iterable[Sample]]]

ORG, BUCKET = "headwater", "metrics"

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


class InfluxReporter:
    """Sends the metrics of one job manager."""

    def __init__(self, settings: InfluxSettings, clock: Callable[[], Micros] = now_micros) -> None:
        self.buffer = Buffer()
        self._settings = settings
        self._clock = clock
        self._over = threading.Event()
        self._wait_s = FIRST_WAIT_S
        self._silent_since: Micros | None = None
        self._thread = threading.Thread(target=self._send_forever, name="influx", daemon=True)

    async def run(self, take: Take) -> None:
        """Measure at every interval, for ever."""
        self._thread.start()
        while True:
            await asyncio.sleep(self._settings.interval_s)
            samples, now = await take(), self._clock()
            self.buffer.add(await asyncio.to_thread(points_of, samples, now))

    def figures(self) -> dict[str, float]:
        """What it tells of itself, as metrics of the job manager."""
        since = self._silent_since
        return {
            "reporterPointsDropped": self.buffer.dropped,
            "reporterPointsWaiting": len(self.buffer),
            "reporterSilentTime": 0 if since is None else (self._clock() - since) / 1_000,
        }

    def close(self) -> None:
        """Send what there is, if that is quick; then end."""
        self._over.set()
        self.buffer.news.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_S)

    def _send_forever(self) -> None:
        settings = self._settings
        with InfluxDBClient(
            settings.url, settings.token, org=settings.org, timeout=TIMEOUT_MS, retries=False
        ) as client:
            api = client.write_api(write_options=SYNCHRONOUS)
            while True:
                wait_s = self.step(api.write)
                if wait_s is None and not self._over.is_set():
                    self.buffer.news.wait()
                elif wait_s is None or (wait_s and self._over.wait(wait_s)):
                    return

    def step(self, write: Callable[..., object]) -> float | None:
        """Send a chunk of what waits; how many seconds to wait then, None for: until there is more.

        `write`: as `WriteApi.write`.
        """
        points = self.buffer.take()
        if not points:
            return None
        if self._send(write, points):
            self._wait_s = FIRST_WAIT_S
            return 0.0
        wait_s, self._wait_s = self._wait_s, min(2 * self._wait_s, LONGEST_WAIT_S)
        return wait_s

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
            if self._silent_since is not None:
                log.info("metrics are written to %s again", settings.address)
            self._silent_since = None
            return True
        self.buffer.put_back(points)
        return False

    def _complain(self, reason: str) -> None:
        if self._silent_since is None:
            log.warning("metrics are not written to %s: %s", self._settings.address, reason)
            self._silent_since = self._clock()


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
