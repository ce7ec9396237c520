"""InfluxDB 2 as the series store of an installation: points go there, and charts come from there.

    HEADWATER_INFLUX_URL     e.g. http://influxdb:8086; without it the embedded store is used
    HEADWATER_INFLUX_TOKEN   may read and write; or HEADWATER_INFLUX_TOKEN_FILE; never logged
    HEADWATER_INFLUX_ORG     headwater

Needs    the buckets `engine`, `outputs`, `metrics` and `platform`.
Guarantee  as of the embedded store: a point is its measurement, tag set and time, and is
           acknowledged when `write` returns.
Errors   SeriesAway when the server does not answer, or refuses what it is asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import urllib3
from django.conf import settings
from influxdb_client.client.exceptions import InfluxDBError
from influxdb_client.client.influxdb_client import InfluxDBClient
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.domain.dialect import Dialect
from influxdb_client.rest import ApiException

from controlplane.metrics import flux
from controlplane.metrics.contract import (
    LIMIT,
    Aggregate,
    Refused,
    Series,
    SeriesAway,
    Where,
    ms_of,
    ns_of,
)
from controlplane.metrics.line_protocol import FieldValue, Point, Tags, written

TIMEOUT_MS = 10_000
CHUNK = 5_000
"""Points in one request: the size that InfluxDB's documentation recommends."""


@dataclass(frozen=True, slots=True)
class InfluxSettings:
    """Where the server is."""

    url: str
    token: str
    org: str

    def __repr__(self) -> str:
        return f"InfluxSettings({self.url!r})"


class InfluxStore:
    """One server; safe to share between threads."""

    def __init__(self, settings: InfluxSettings) -> None:
        self._url = settings.url
        self._org = settings.org
        self._client = InfluxDBClient(
            settings.url, settings.token, org=settings.org, timeout=TIMEOUT_MS, enable_gzip=True
        )
        self._kinds: dict[tuple[str, str, str], str] = {}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()  # type: ignore[no-untyped-call]

    def write(self, bucket: str, points: Sequence[Point]) -> list[Refused]:
        """Keep the points. Raises SeriesAway; what the server refuses it does not tell apart."""
        # The parts of a client outlive it if they are kept, and then fail when modules are gone.
        writes = self._client.write_api(write_options=SYNCHRONOUS)
        for first in range(0, len(points), CHUNK):
            lines = "\n".join(written(point) for point in points[first : first + CHUNK])
            with self._answered():
                writes.write(bucket, self._org, lines)
        return []

    def query(
        self,
        bucket: str,
        measurement: str,
        field: str,
        *,
        where: Where | None = None,
        start_ms: float | None = None,
        stop_ms: float | None = None,
        step_ms: int | None = None,
        aggregate: Aggregate | str = Aggregate.MEAN,
        limit: int = LIMIT,
    ) -> list[Series]:
        """As `SeriesSource.query`."""
        low, high = ns_of(start_ms, flux.FIRST_NS), ns_of(stop_ms, flux.LAST_NS)
        asked = flux.points(
            bucket, measurement, field, where or {}, low, high, step_ms, Aggregate(aggregate), limit
        )
        if step_ms and self._kind(bucket, measurement, field) == "string":
            return []
        found: dict[Tags, list[tuple[float, FieldValue]]] = {}
        for row in self._rows(asked):
            # Flux before 0.66 reads the end of the range too, and begins a step with the range.
            if row.time_ns < high:
                at = ms_of(row.time_ns) // step_ms * step_ms if step_ms else ms_of(row.time_ns)
                found.setdefault(row.tags, []).append((at, row.value))
        return [Series(dict(tags), sorted(points)) for tags, points in sorted(found.items())]

    def _kind(self, bucket: str, measurement: str, field: str) -> str:
        """The type of a field, which it has for ever."""
        key = (bucket, measurement, field)
        if key not in self._kinds:
            kinds = self.fields(bucket, measurement)
            self._kinds |= {(bucket, measurement, name): kind for name, kind in kinds.items()}
        return self._kinds.get(key, "")

    def measurements(self, bucket: str) -> list[str]:
        """What has been written to."""
        return sorted({row.measurement for row in self._rows(flux.ends(bucket, None, "first"))})

    def fields(self, bucket: str, measurement: str) -> dict[str, str]:
        """Its fields and their types: float, integer, boolean, string."""
        rows = self._rows(flux.ends(bucket, measurement, "first"))
        return dict(sorted({row.field: row.kind for row in rows}.items()))

    def tag_sets(self, bucket: str, measurement: str) -> list[dict[str, str]]:
        """The tag sets of its series."""
        rows = self._rows(flux.ends(bucket, measurement, "first"))
        return [dict(tags) for tags in sorted({row.tags for row in rows})]

    def span_ms(self, bucket: str, measurement: str) -> tuple[float, float] | None:
        """Times of its first and last point."""
        first = [row.time_ns for row in self._rows(flux.ends(bucket, measurement, "first"))]
        last = [row.time_ns for row in self._rows(flux.ends(bucket, measurement, "last"))]
        return (ms_of(min(first)), ms_of(max(last))) if first and last else None

    def _rows(self, query: str) -> list[flux.Row]:
        dialect = Dialect(annotations=["datatype", "group", "default"])  # type: ignore[no-untyped-call]
        with self._answered():
            answer = self._client.query_api().query_raw(query, dialect=dialect)
            return list(flux.rows(answer.data.decode().splitlines()))

    @contextmanager
    def _answered(self) -> Iterator[None]:
        try:
            yield
        except (ApiException, InfluxDBError) as error:
            status = f"HTTP {error.status}" if isinstance(error, ApiException) else "no answer"
            reason = getattr(error, "message", None) or getattr(error, "reason", "") or ""
            msg = f"InfluxDB at {self._url} refused: {status} {reason}".strip()
            raise SeriesAway(msg) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            msg = f"InfluxDB at {self._url} does not answer: {type(error).__name__}"
            raise SeriesAway(msg) from error


def settings_here() -> InfluxSettings | None:
    """What the environment says; None when it names no server."""
    url = os.environ.get("HEADWATER_INFLUX_URL", "").strip()
    org = os.environ.get("HEADWATER_INFLUX_ORG", "headwater")
    return InfluxSettings(url, settings.HEADWATER_INFLUX_TOKEN, org) if url else None
