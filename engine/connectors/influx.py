r"""InfluxDB sink: points by line protocol, written so that writing them again changes nothing.

    frame --one expression--> lines --chunks, acknowledged--> /api/v2/write

Guarantee  exactly once in effect: a point is identified by measurement, tags and time, all of which
           come from the data, so a replay overwrites each point with itself. Every point is
           acknowledged before its checkpoint completes. Points are visible before it does.
Needs      tags and time that tell any two rows apart: of two that agree the last one stays. Which
           one that is may differ from run to run, so the sink does not guess: it counts them in
           `pointsCollided`, as far as they are among its last points. Where events may coincide, a
           number has to become a tag: one that they bring, or that of `number_ties("n")` on the
           stream by the other tags, which any run gives to the same row.
Counted    `fieldsLeftOut`, `tagsChanged`, `pointsWithoutTime`: what cannot be stored as it is, see
           `point_lines.py`. `pointsBeyondRetention`: older than the server keeps; they are gone,
           and the job goes on.
Units      times are written in microseconds.
Errors     ConfigError when no address is configured; DataError, which fails the job, when the
           server refuses points for what they are, such as a field of another type; SinkError when
           it does not answer after several tries: the checkpoint is held, and the job backs off.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy

import polars as pl
import urllib3
from influxdb_client.client.exceptions import InfluxDBError
from influxdb_client.client.influxdb_client import InfluxDBClient
from influxdb_client.client.write.retry import WritesRetry
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException

from engine.connectors.contract import Json, Sink, SinkContext, SinkWriter, require_columns
from engine.connectors.point_lines import RecentPoints, points
from engine.errors import ConfigError, DataError, GraphError, SinkError

URL_VARIABLE = "HEADWATER_POINTS_URL"
TOKEN_VARIABLE = "HEADWATER_POINTS_TOKEN"  # noqa: S105 - the name of a variable, not a token
ORG_VARIABLE = "HEADWATER_POINTS_ORG"

RESERVED_NAMES = frozenset({"time", "_measurement", "_field"})
"""Tags and fields of these names are dropped by InfluxDB, without a word."""

CHUNK_LINES = 5_000
"""Lines in one request: the size that InfluxDB's documentation recommends."""

TIMEOUT_MS = 10_000

BEYOND_RETENTION = 422
"""What a server says of points that it would delete at once."""

BAD_POINTS, TOO_LARGE = 400, 413

TRIES = 4
"""Then the job restarts, which is a longer back-off."""


class InfluxSink(Sink):
    """Writes a point per row: `tags` and `fields` are columns, `time` is the column of its time.

    Address and token are looked up where the job runs, in the environment, unless given here.
    """

    def __init__(
        self,
        measurement: str,
        *,
        tags: Sequence[str],
        fields: Sequence[str],
        time: str = "event_time",
        url: str | None = None,
        token: str | None = None,
        org: str | None = None,
        bucket: str = "outputs",
    ) -> None:
        if not fields:
            msg = f"measurement '{measurement}' has no fields; pass e.g. fields=['value']"
            raise ConfigError(msg)
        self.measurement = measurement
        self.tags = tuple(tags)
        self.fields = tuple(fields)
        self._check_names()
        self.time = time
        self.url = url
        self.token = token
        self.org = org
        self.bucket = bucket

    def _check_names(self) -> None:
        for name in (self.measurement, *self.tags, *self.fields):
            if not name or name.endswith("\\") or "\n" in name:
                msg = (
                    f"measurement '{self.measurement}' has a name that cannot be written: got "
                    f"{name!r}; use one without line breaks, and without a backslash at its end"
                )
                raise ConfigError(msg)
        taken = {*self.tags, *self.fields} & RESERVED_NAMES
        if taken or self.measurement.startswith("#"):
            name = min(taken, default=self.measurement)
            msg = (
                f"measurement '{self.measurement}' has a name that InfluxDB drops: got {name!r}; "
                f"use another than {', '.join(sorted(RESERVED_NAMES))}, and none that begins with #"
            )
            raise ConfigError(msg)

    def check(self, schema: Mapping[str, pl.DataType]) -> None:
        """Refuse a stream whose columns are not there, or no values. Raises GraphError."""
        require_columns(schema, (*self.tags, *self.fields, self.time), repr(self.measurement))
        dtype = schema[self.time]
        if not (dtype.is_integer() or dtype in (pl.Datetime, pl.Date)):
            msg = (
                f"sink to {self.measurement!r} has no time in column {self.time!r}: it is {dtype}; "
                "name a column of times, or of µs since 1970"
            )
            raise GraphError(msg)
        for name in (*self.tags, *self.fields):
            if schema[name].is_nested() or schema[name] in (pl.Binary, pl.Object):
                msg = (
                    f"sink to {self.measurement!r} cannot write column {name!r}: it is "
                    f"{schema[name]}; make a number, a text or a boolean of it"
                )
                raise GraphError(msg)

    def open(self, context: SinkContext) -> InfluxWriter:
        """Find the server. Raises ConfigError when none is configured."""
        url = self.url or os.environ.get(URL_VARIABLE)
        if not url:
            msg = (
                f"measurement '{self.measurement}' has no server: {URL_VARIABLE} is not set; "
                "set it, or pass url= to InfluxSink"
            )
            raise ConfigError(msg)
        token = self.token or os.environ.get(TOKEN_VARIABLE, "")
        org = self.org or os.environ.get(ORG_VARIABLE, "headwater")
        return InfluxWriter(self, url, token, org, context.count)

    def shadow(self, name: str) -> InfluxSink:
        """The same points in the measurement `<measurement>@<name>`."""
        beside = copy(self)
        beside.measurement = f"{self.measurement}@{name}"
        return beside

    def describe(self) -> Mapping[str, str]:
        """The measurement; never the token."""
        return {
            "kind": "influx",
            "target": self.measurement,
            "bucket": self.bucket,
            "tags": ", ".join(self.tags),
            "fields": ", ".join(self.fields),
            "time": self.time,
        }


class InfluxWriter(SinkWriter):
    """Sends the points of one subtask."""

    def __init__(
        self, sink: InfluxSink, url: str, token: str, org: str, count: Callable[[str, int], None]
    ) -> None:
        retries = WritesRetry(
            total=TRIES, retry_interval=1, max_retry_delay=4, allowed_methods=["POST"]
        )
        self._sink = sink
        self._count = count
        self._url = url
        self._org = org
        self._client = InfluxDBClient(url, token, org=org, timeout=TIMEOUT_MS, retries=retries)
        self._api = self._client.write_api(write_options=SYNCHRONOUS)
        self._lines: list[str] = []
        self._recent = RecentPoints()

    def write(self, frame: pl.DataFrame) -> None:
        """Turn rows into lines, and send full chunks."""
        lines, flaws = points(frame, self._sink, self._recent)
        for name, number in flaws.items():
            self._count(name, number)
        self._lines += lines
        while len(self._lines) >= CHUNK_LINES:
            self._send(CHUNK_LINES)

    def prepare(self, checkpoint_id: int) -> Json | None:
        """Send the rest: when this returns, the server has acknowledged every point."""
        while self._lines:
            self._send(CHUNK_LINES)
        return None

    def close(self) -> None:
        """Close the connection; unsent points belong to no checkpoint."""
        self._api.close()  # type: ignore[no-untyped-call]
        self._client.close()  # type: ignore[no-untyped-call]

    def _send(self, count: int) -> None:
        """Send the first lines, or as many of them as the server takes at a time."""
        chunk = self._lines[:count]
        try:
            self._api.write(self._sink.bucket, self._org, "\n".join(chunk), write_precision="us")  # type: ignore[arg-type]
        except (ApiException, InfluxDBError, urllib3.exceptions.HTTPError) as error:
            if _status(error) == TOO_LARGE and len(chunk) > 1:
                self._send(len(chunk) // 2)
                return
            self._refused(error)
        del self._lines[:count]

    def _refused(self, error: Exception) -> None:
        """Count what is gone for good. Raises DataError, SinkError for everything else."""
        status = _status(error)
        if status == BEYOND_RETENTION:
            self._count("pointsBeyondRetention", _dropped(error))
            return
        said = f"measurement '{self._sink.measurement}' was not written to {self._url}: "
        if status in (BAD_POINTS, TOO_LARGE):
            msg = (
                f"{said}{_reason(error)}; write such values to a field or measurement of their own"
            )
            raise DataError(msg) from error
        msg = f"{said}{_reason(error)}; check that the server runs and takes the token"
        raise SinkError(msg) from error


def _status(error: Exception) -> int:
    """HTTP status of a refusal; 0 when there was no answer."""
    return int(getattr(error, "status", None) or 0)


def _reason(error: Exception) -> str:
    """What the server said, or why it did not."""
    said = getattr(error, "message", None)
    status = _status(error)
    if status:
        return f"HTTP {status} {said or getattr(error, 'reason', '')}".strip()
    while isinstance(error, urllib3.exceptions.MaxRetryError) and error.reason is not None:
        error = error.reason
    # "HTTPConnection(host=…): Failed to establish a new connection: [Errno 111] Connection refused"
    why = str(error).split("\n", 1)[0].rpartition(": ")[2]
    return f"it does not answer: {why.rpartition('] ')[2]}"


def _dropped(error: Exception) -> int:
    """How many points a server says that it has dropped; one when it does not say."""
    match = re.search(r"dropped=(\d+)", _reason(error))
    return int(match[1]) if match else 1
