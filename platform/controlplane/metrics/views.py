"""`POST /api/v2/write`: points in line protocol, as InfluxDB 2 takes them.

    Authorization: Token …      204  all points are kept
    ?bucket=&org=&precision=    400  some are not: the sentence names line and reason, the good
    Content-Encoding: gzip           lines are kept; or the request itself cannot be used
                                401  no token, or not the one
                                413  more than 16 MiB of text
                                415  packed with anything but gzip

Needs    HEADWATER_POINTS_TOKEN_SHA256: without it every token is refused.
Guarantee  points are on disk when the answer is on its way.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import time
import zlib

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from controlplane.metrics.line_protocol import NANOS_PER, Rejected, parse
from controlplane.metrics.series_store import rejections
from controlplane.metrics.store import series_store

MAX_TEXT_BYTES = 16 * 1024 * 1024
SHOWN_REASONS = 3
_BUCKET = re.compile(r"[\w.@-]{1,64}")


class _Refusal(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.answer = JsonResponse({"code": code, "message": message}, status=status)


@csrf_exempt  # the token is the proof; no cookie is looked at
@require_POST
def write(request: HttpRequest) -> HttpResponse:
    """Keep the points of the body."""
    try:
        _check_token(request)
        bucket, precision = _parameters(request)
        parsed = parse(_text(request), now_ns=time.time_ns(), precision=precision)  # noqa: TID251
    except _Refusal as refusal:
        return refusal.answer
    refused = series_store().write(bucket, parsed.points)
    bad = parsed.rejected + rejections(refused, parsed.points, parsed.lines)
    if bad:
        kept = len(parsed.points) - len(refused)
        return JsonResponse({"code": "invalid", "message": _sentence(bad, kept)}, status=400)
    return HttpResponse(status=204)


@require_safe
def ping(request: HttpRequest) -> HttpResponse:
    """Say that somebody answers here."""
    return HttpResponse(status=204)


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


def _sentence(bad: list[Rejected], kept: int) -> str:
    shown = "; ".join(str(one) for one in bad[:SHOWN_REASONS])
    more = f"; and {len(bad) - SHOWN_REASONS} more" if len(bad) > SHOWN_REASONS else ""
    return f"partial write: {len(bad)} rejected, {kept} kept: {shown}{more}"
