r"""InfluxDB sink: points by line protocol, written so that writing them again changes nothing.

    frame --one expression--> lines --chunks, acknowledged--> /api/v2/write

Guarantee  exactly once in effect: a point is identified by measurement, tags and time, all of which
           come from the data, so a replay overwrites each point with itself. Every point is
           acknowledged before its checkpoint completes. Points are visible before it does.
Needs      tags and time that tell any two rows apart: of two that agree the last one stays. Of one
           batch they are counted, in `pointsCollided`: a column that tells them apart, such as the
           number of an event, has to become a tag.
Counted    `fieldsLeftOut`: null, NaN, infinite, or whole and beyond 64 bits, which cannot be
           stored; a row with no field left is no point. `tagsChanged`: what the protocol cannot say
           in a tag: a line break becomes `\n`, a backslash at the end `∖`.
           `pointsBeyondRetention`: older than the server keeps; they are gone, the job goes on.
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
from engine.errors import ConfigError, DataError, SinkError

URL_VARIABLE = "HEADWATER_POINTS_URL"
TOKEN_VARIABLE = "HEADWATER_POINTS_TOKEN"  # noqa: S105 - the name of a variable, not a token
ORG_VARIABLE = "HEADWATER_POINTS_ORG"

CHUNK_LINES = 5_000
"""Lines in one request: the size that InfluxDB's documentation recommends."""

TIMEOUT_MS = 10_000

FIELDS = "\0fields"
"""The column of joined fields while lines are made: a name that no column of a job has."""

BEYOND_RETENTION = 422
"""What a server says of points that it would delete at once."""

BAD_POINTS = 400

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
        for name in (measurement, *self.tags, *self.fields):
            if not name or name.endswith("\\") or "\n" in name:
                msg = (
                    f"measurement '{measurement}' has a name that cannot be written: got {name!r}; "
                    "use one without line breaks, and without a backslash at its end"
                )
                raise ConfigError(msg)
        self.time = time
        self.url = url
        self.token = token
        self.org = org
        self.bucket = bucket

    def check(self, schema: Mapping[str, pl.DataType]) -> None:
        """Refuse a stream without one of the columns. Raises GraphError."""
        require_columns(schema, (*self.tags, *self.fields, self.time), repr(self.measurement))

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

    def write(self, frame: pl.DataFrame) -> None:
        """Turn rows into lines, and send full chunks."""
        lines, flaws = points(frame, self._sink)
        for name, number in flaws.items():
            self._count(name, number)
        self._lines += lines
        while len(self._lines) >= CHUNK_LINES:
            self._send(CHUNK_LINES)

    def prepare(self, checkpoint_id: int) -> Json | None:
        """Send the rest: when this returns, the server has acknowledged every point."""
        if self._lines:
            self._send(CHUNK_LINES)
        return None

    def close(self) -> None:
        """Close the connection; unsent points belong to no checkpoint."""
        self._api.close()  # type: ignore[no-untyped-call]
        self._client.close()  # type: ignore[no-untyped-call]

    def _send(self, count: int) -> None:
        chunk = "\n".join(self._lines[:count])
        try:
            self._api.write(self._sink.bucket, self._org, chunk, write_precision="us")  # type: ignore[arg-type]
        except (ApiException, InfluxDBError, urllib3.exceptions.HTTPError) as error:
            self._refused(error)
        del self._lines[:count]

    def _refused(self, error: Exception) -> None:
        """Count what is gone for good. Raises DataError, SinkError for everything else."""
        status = _status(error)
        if status == BEYOND_RETENTION:
            self._count("pointsBeyondRetention", _dropped(error))
            return
        said = f"measurement '{self._sink.measurement}' was not written to {self._url}: "
        if status == BAD_POINTS:
            msg = (
                f"{said}{_reason(error)}; write such values to a field or measurement of their own"
            )
            raise DataError(msg) from error
        msg = f"{said}{_reason(error)}; check that the server runs and takes the token"
        raise SinkError(msg) from error


def points(frame: pl.DataFrame, sink: InfluxSink) -> tuple[list[str], dict[str, int]]:
    """Return line protocol for the rows, and counts of what is not in it as it was.

    >>> sink = InfluxSink("daily", tags=["origin"], fields=["flights", "delay"])
    >>> rows = {"origin": ["JFK"], "flights": [2], "delay": [0.5], "event_time": [7]}
    >>> points(pl.DataFrame(rows), sink)
    (['daily,origin=JFK flights=2i,delay=0.5 7'], {})
    """
    missing = [name for name in (*sink.tags, *sink.fields, sink.time) if name not in frame.columns]
    if missing:
        msg = (
            f"measurement '{sink.measurement}' needs columns that are not there: "
            f"{', '.join(missing)}; rows have {', '.join(frame.columns)}"
        )
        raise ConfigError(msg)
    fields = frame.select(_field(name, frame.schema[name]) for name in sink.fields)
    series = (pl.lit(_escaped_name(sink.measurement)), *(_tag(name) for name in sink.tags))
    space = pl.lit(" ")
    line = pl.concat_str(*series, space, pl.col(FIELDS), space, _time(frame, sink.time))
    joined = fields.select(pl.concat_str(pl.all(), separator=",", ignore_nulls=True).alias(FIELDS))
    rows = frame.with_columns(joined.to_series()).filter(pl.col(FIELDS) != "")
    lines = rows.select(line.alias("line")).to_series().drop_nulls().to_list()
    flaws = {
        "fieldsLeftOut": sum(fields.null_count().row(0)),
        "tagsChanged": _changed_tags(frame, sink.tags),
        "pointsCollided": rows.height - rows.select({*sink.tags, sink.time}).n_unique(),
    }
    return lines, {name: number for name, number in flaws.items() if number}


def _changed_tags(frame: pl.DataFrame, tags: Sequence[str]) -> int:
    """How many values of tags the protocol cannot say as they are."""
    unsayable = [pl.col(tag).cast(pl.String).str.contains(r"\n|\\$").sum() for tag in tags]
    return sum(frame.select(unsayable).row(0)) if tags else 0


def _field(name: str, dtype: pl.DataType) -> pl.Expr:
    """`name=value`, or null when the value cannot be stored."""
    column = pl.col(name)
    if dtype.is_integer():
        value = column.cast(pl.Int64, strict=False).cast(pl.String) + "i"
    elif dtype.is_numeric():
        number = column.cast(pl.Float64)
        value = pl.when(number.is_finite()).then(number.cast(pl.String))
    elif dtype == pl.Boolean:
        value = column.cast(pl.String)
    else:
        text = column.cast(pl.String).str.replace_all("\\", "\\\\", literal=True)
        value = pl.lit('"') + text.str.replace_all('"', '\\"', literal=True) + '"'
    return (pl.lit(f"{_escaped_key(name)}=") + value).alias(name)


def _tag(name: str) -> pl.Expr:
    """`,name=value`; a tag that is null or empty is left out, as the protocol wants."""
    value = pl.col(name).cast(pl.String)
    for character in (",", "=", " "):
        value = value.str.replace_all(character, f"\\{character}", literal=True)
    value = value.str.replace_all("\n", "\\n", literal=True).str.replace(r"\\$", "∖")
    pair = pl.lit(f",{_escaped_key(name)}=") + value
    return pl.when(value != "").then(pair).otherwise(pl.lit(""))


def _time(frame: pl.DataFrame, name: str) -> pl.Expr:
    dtype = frame.schema[name]
    column = pl.col(name)
    micros = column if dtype.is_integer() else column.cast(pl.Datetime("us")).dt.epoch("us")
    return micros.cast(pl.String)


def _escaped_name(text: str) -> str:
    return text.replace(",", "\\,").replace(" ", "\\ ")


def _escaped_key(text: str) -> str:
    return _escaped_name(text).replace("=", "\\=")


def _status(error: Exception) -> int:
    """HTTP status of a refusal; 0 when there was no answer."""
    return int(getattr(error, "status", None) or 0)


def _reason(error: Exception) -> str:
    """What the server said, or why it did not."""
    said = getattr(error, "message", None)
    status = _status(error)
    if status:
        return f"HTTP {status} {said or getattr(error, 'reason', '')}".strip()
    return str(error).split("\n", 1)[0]


def _dropped(error: Exception) -> int:
    """How many points a server says that it has dropped; one when it does not say."""
    match = re.search(r"dropped=(\d+)", _reason(error))
    return int(match[1]) if match else 1
