"""`POST /api/v2/write`: points in line protocol, as InfluxDB 2 takes them.

    Authorization: Token …      204  all points are kept
    ?bucket=&org=&precision=    400  some are not: the sentence names line and reason, the good
    Content-Encoding: gzip           lines are kept; or the request itself cannot be used
                                401  no token, or not the one
                                413  more than 16 MiB of text
                                415  packed with anything but gzip
                                422  some are older than raw points are kept; the others are kept
                                429  too many at once; Retry-After says when to come again
                                503  the disk does not take them, likewise

`GET /metrics`, with the same token: the control plane, for Prometheus.

Shapes   refusals are {"code", "message"} with InfluxDB's codes, and `line` where one is at fault.
Needs    HEADWATER_POINTS_TOKEN_SHA256: without it every token is refused.
Guarantee  points are on disk when the answer is on its way.
Source   InfluxDB 2 API, POST /api/v2/write.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import sqlite3
import threading
import time
import zlib
from dataclasses import dataclass

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from controlplane.metrics import prometheus
from controlplane.metrics.contract import SeriesAway
from controlplane.metrics.keeping import tell_of_process
from controlplane.metrics.line_protocol import NANOS_PER, Parsed, parse
from controlplane.metrics.self_measure import measures
from controlplane.metrics.store import series_store

MAX_TEXT_BYTES = 16 * 1024 * 1024
AT_ONCE = 4
"""Writes under way in this process: each holds its text, and SQLite takes one at a time."""
SHOWN_REASONS = 3
RETRY_AFTER_S = 1
VERSION = "2.7.0-headwater"
"""What clients are told that it is like: what `/api/v2/write` of that release takes."""
_BUCKET = re.compile(r"[\w.@-]{1,64}")
_turns = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True, slots=True)
class _Bad:
    """A line that was not kept, or not all of it."""

    line: int
    reason: str
    text: str
    beyond_retention: bool = False

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}: {self.text!r}"


class _Refusal(Exception):
    def __init__(self, status: int, code: str, message: str, line: int | None = None) -> None:
        super().__init__(message)
        body = {"code": code, "message": message} | ({} if line is None else {"line": line})
        self.answer = JsonResponse(body, status=status)
        if status in (429, 503):
            self.answer["Retry-After"] = str(RETRY_AFTER_S)


@csrf_exempt  # the token is the proof; no cookie is looked at
@require_POST
async def write(request: HttpRequest) -> HttpResponse:
    """Keep the points of the body; on a thread of its own, for pages do not wait for it."""
    return await sync_to_async(_write, thread_sensitive=False)(request)


def _write(request: HttpRequest) -> HttpResponse:
    try:
        _check_token(request)
        bucket, precision = _parameters(request)
        if not _turns.acquire(blocking=False):
            message = f"{AT_ONCE} writes are under way; come again"
            raise _Refusal(429, "too many requests", message)
        try:
            now_ns = time.time_ns()  # noqa: TID251 - what has no time happened now
            _keep(bucket, parse(_text(request), now_ns=now_ns, precision=precision))
        finally:
            _turns.release()
    except _Refusal as refusal:
        measures().count("write_requests_refused")
        return refusal.answer
    return HttpResponse(status=204)


def _keep(bucket: str, parsed: Parsed) -> None:
    """Write what can be written. Raises _Refusal when that is not all."""
    try:
        refused = series_store().write(bucket, parsed.points)
    except (sqlite3.OperationalError, SeriesAway) as error:
        message = f"points cannot be written now: {error}"
        raise _Refusal(503, "unavailable", message) from error
    bad = [_Bad(one.line, one.reason, one.text) for one in parsed.rejected]
    for one in refused:
        name = parsed.points[one.index].measurement
        bad.append(_Bad(parsed.lines[one.index], one.reason, name, one.beyond_retention))
    kept = len(parsed.points) - len(refused)
    measures().count("points_written", kept)
    if bad:
        bad.sort(key=lambda one: one.line)
        measures().count("points_refused", len(bad))
        tell_of_process()  # at once: an alert may be waiting for it, and no tab be connected
        raise _partial(bad, kept)


def _partial(bad: list[_Bad], kept: int) -> _Refusal:
    """The answer when some points were kept and others not."""
    if all(one.beyond_retention for one in bad):
        message = f"partial write: points beyond retention policy dropped={len(bad)}, {kept} kept"
        return _Refusal(422, "unprocessable entity", f"{message}: {_shown(bad)}")
    message = f"partial write: {len(bad)} rejected, {kept} kept: {_shown(bad)}"
    return _Refusal(400, "invalid", message, bad[0].line)


def _shown(bad: list[_Bad]) -> str:
    more = f"; and {len(bad) - SHOWN_REASONS} more" if len(bad) > SHOWN_REASONS else ""
    return "; ".join(str(one) for one in bad[:SHOWN_REASONS]) + more


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """What Prometheus scrapes, with the token that points are written with."""
    try:
        _check_token(request)
    except _Refusal as refusal:
        return refusal.answer
    return HttpResponse(prometheus.text(timezone.now()), content_type=prometheus.CONTENT_TYPE)


@require_safe
def ping(request: HttpRequest) -> HttpResponse:
    """Say that somebody answers here."""
    headers = {"X-Influxdb-Build": "Headwater", "X-Influxdb-Version": VERSION}
    return HttpResponse(status=204, headers=headers)


def token_digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def _check_token(request: HttpRequest) -> None:
    """Raises _Refusal."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    wanted = os.environ.get("HEADWATER_POINTS_TOKEN_SHA256", "")
    given = token_digest(token.strip())
    if scheme.lower() not in {"token", "bearer"} or not hmac.compare_digest(given, wanted):
        raise _Refusal(401, "unauthorized", "a token is needed: Authorization: Token <token>")


def _parameters(request: HttpRequest) -> tuple[str, str]:
    """Bucket and precision. Raises _Refusal."""
    bucket = request.GET.get("bucket", "")
    if not _BUCKET.fullmatch(bucket):
        message = f"a bucket is needed: got {bucket[:64]!r}; say ?bucket=outputs"
        raise _Refusal(400, "invalid", message)
    precision = request.GET.get("precision", "ns")
    if precision not in NANOS_PER:
        message = f"precision is one of ns, us, ms, s: got {precision[:20]!r}"
        raise _Refusal(400, "invalid", message)
    return bucket, precision


def _text(request: HttpRequest) -> str:
    """The body, unpacked. Raises _Refusal."""
    if int(request.headers.get("Content-Length") or 0) > MAX_TEXT_BYTES:
        raise _too_large()
    # Not request.body: its bound (2 MiB) is meant for forms.
    raw = request.read(MAX_TEXT_BYTES + 1)
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    if encoding == "gzip":
        raw = _gunzip(raw)
    elif encoding != "identity":
        message = f"the body is packed with {encoding[:20]!r}: send it as it is, or with gzip"
        raise _Refusal(415, "invalid", message)
    if len(raw) > MAX_TEXT_BYTES:
        raise _too_large()
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        message = f"the body must be UTF-8: byte {error.start} is not"
        raise _Refusal(400, "invalid", message) from None


def _gunzip(raw: bytes) -> bytes:
    """Unpack at most one byte more than is allowed, whatever the body claims. Raises _Refusal."""
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = unpacker.decompress(raw, MAX_TEXT_BYTES + 1)
    except zlib.error:
        text, torn = b"", True
    else:
        torn = not unpacker.eof and len(text) <= MAX_TEXT_BYTES
    if torn:
        raise _Refusal(400, "invalid", "the body is no whole gzip stream")
    return text


def _too_large() -> _Refusal:
    message = f"the body is larger than {MAX_TEXT_BYTES} bytes; write in smaller batches"
    return _Refusal(413, "request too large", message)
