"""`Idempotency-Key`: a request that is sent again gets the answer that it got.

    keep    around a call that changes something: one transaction for what it does and its answer
    claim   inside, once it is known who asks: an answer that is kept is given again, else the key
            is taken, and whoever sends it meanwhile waits for the answer

While the call asks an engine the transaction is put down, and others write (`resting.py`). The key
stays taken, for LEASE: who comes later takes it over, and then the one who had it writes nothing.

Guarantee   With the same key the same request does what it does once, twice at once and over a
            crash too: its rows and its answer are in the database together, or neither is.
            A request that was refused did nothing: it may be sent again with the same key.
Needs       The same token, or the same person's session: a key is nobody else's.
Errors      Refused: 400 for a key that cannot be one, 422 for one of another request.
Source      draft-ietf-httpapi-idempotency-key-header.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar

from cryptography.fernet import Fernet
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import salted_hmac

from controlplane.access.errors import Refused, conflict, invalid
from controlplane.api.auth import ApiRequest
from controlplane.api.models import KeptAnswer
from controlplane.resting import Held, at_rest, whole_request

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
MAX_CHARACTERS = 64
KEPT = timedelta(hours=24)
LEASE = timedelta(seconds=60)
"""How long nobody doubts that a request goes on: it asks an engine for ten seconds at a time."""
POLL_S = 0.1
READING = frozenset({"GET", "HEAD", "OPTIONS"})
FIELD = {
    "in": "header",
    "name": HEADER,
    "required": False,
    "schema": {
        "type": "string",
        "maxLength": MAX_CHARACTERS,
        "description": f"sent again with the same key within {KEPT.total_seconds() / 3600:.0f} h, "
        "the request does nothing twice and gets the same answer",
    },
}
"""How the header is described in OpenAPI."""

_CLAIM = "_headwater_kept_answer"
_REQUEST = "_headwater_request"
Call = TypeVar("Call", bound=Callable[..., Any])


def keep(call: Call) -> Call:
    """A call that keeps its answer with what it did."""

    @wraps(call)
    def answer(request: HttpRequest, *path: Any, **values: Any) -> HttpResponse:
        if request.method in READING or HEADER not in request.headers:
            response: HttpResponse = call(request, *path, **values)
            return response
        with whole_request() as held:
            setattr(request, _REQUEST, held)
            response = call(request, *path, **values)
            claimed = getattr(request, _CLAIM, None)
            if response.status_code >= 400:
                transaction.set_rollback(True)
            elif claimed is not None:
                _write_down(claimed, _given(request), response)
        if response.status_code >= 400 and claimed is not None and held.was_put_down:
            _held(claimed).delete()
        return response

    return answer  # type: ignore[return-value]


def claim(call: Call) -> Call:
    """A call that gives an answer that is kept already, and else takes the key."""

    @wraps(call)
    def answer(request: ApiRequest, *path: Any, **values: Any) -> Any:
        if request.method in READING or HEADER not in request.headers:
            return call(request, *path, **values)
        held: Held = getattr(request, _REQUEST)
        kept = _kept_or_claimed(request, held)
        if kept.status:
            return _again(kept, _given(request))
        setattr(request, _CLAIM, kept)
        held.may_be_kept()
        held.back = lambda: _check_held(kept, _given(request))
        return call(request, *path, **values)

    return answer  # type: ignore[return-value]


def forget_answers() -> int:
    """Delete those that were kept long enough; how many."""
    return KeptAnswer.objects.filter(kept_until__lte=timezone.now()).delete()[0]


def _kept_or_claimed(request: ApiRequest, held: Held) -> KeptAnswer:
    """The row of this key: with an answer, or held by this request from now on."""
    now, asked = timezone.now(), _hash_of(request)
    who = f"{request.auth.pk}:{request.headers.get('Authorization', '')}"
    # By the platform's secret too: when that changes, what was sealed cannot be read any more.
    key = salted_hmac("headwater.kept answers", f"{who}:{_given(request)}", algorithm="sha256")
    key_hash = key.hexdigest()
    KeptAnswer.objects.filter(key_hash=key_hash, kept_until__lte=now).delete()
    while (kept := _taken(key_hash, asked)) is None:
        kept = KeptAnswer.objects.filter(key_hash=key_hash).first()
        if kept is not None and kept.request_hash != asked:
            raise _reused(_given(request))
        if kept is not None and kept.status:
            break
        held.may_be_kept()
        with at_rest():
            time.sleep(POLL_S)
    return kept


def _reused(key: str) -> Refused:
    msg = f"the idempotency key {key} was sent with another request: use a new one"
    return Refused(422, "key_reused", msg)


def _taken(key_hash: str, asked: str) -> KeptAnswer | None:
    """The row, when nobody has the key, or nobody has it any more; else None."""
    now = timezone.now()
    until = now + LEASE
    try:
        with transaction.atomic():
            return KeptAnswer.objects.create(
                key_hash=key_hash, request_hash=asked, kept_until=now + KEPT, held_until=until
            )
    except IntegrityError:
        abandoned = KeptAnswer.objects.filter(key_hash=key_hash, request_hash=asked, status=0)
    if abandoned.filter(held_until__lte=now).update(held_until=until):
        return abandoned.get()
    return None


def _held(kept: KeptAnswer) -> QuerySet[KeptAnswer]:
    """Its row, unless somebody has taken the key over."""
    return KeptAnswer.objects.filter(pk=kept.pk, status=0, held_until=kept.held_until)


def _check_held(kept: KeptAnswer, key: str) -> None:
    """Lock the row. Raises Refused."""
    if not _held(kept).update(held_until=kept.held_until):
        msg = f"the engine took too long: another request with the idempotency key {key} goes on"
        raise conflict(msg)


def _given(request: HttpRequest) -> str:
    """The key as it was sent. Raises Refused."""
    key = request.headers[HEADER].strip()
    if not 0 < len(key) <= MAX_CHARACTERS or not key.isascii() or not key.isprintable():
        msg = (
            f"an idempotency key has 1 to {MAX_CHARACTERS} printable characters of ASCII: got "
            f"{key[:80]!r}; send e.g. a new UUID with each request"
        )
        raise invalid(msg, HEADER)
    return key


def _hash_of(request: HttpRequest) -> str:
    """Of what was asked; a form is the same with other boundaries between its parts."""
    asked = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    if request.content_type != "multipart/form-data":
        asked.update(request.body)
        return asked.hexdigest()
    asked.update(repr(sorted(request.POST.lists())).encode())
    for field, files in sorted(request.FILES.lists()):
        for file in files:
            content = hashlib.sha256(file.read()).hexdigest()
            file.seek(0)
            asked.update(f"{field} {file.name!r} {content}\n".encode())
    return asked.hexdigest()


def _write_down(kept: KeptAnswer, key: str, response: HttpResponse) -> None:
    kept.status = response.status_code
    kept.sealed = _seal(key).encrypt(response.content)
    kept.save(update_fields=["status", "sealed"])


def _again(kept: KeptAnswer, key: str) -> HttpResponse:
    content = _seal(key).decrypt(bytes(kept.sealed))
    response = HttpResponse(content, status=kept.status, content_type="application/json")
    response[REPLAYED] = "true"
    return response


def _seal(key: str) -> Fernet:
    """Opens only with the key that was sent, which the database does not have."""
    secret = salted_hmac("headwater.kept answers.seal", key, algorithm="sha256").digest()
    return Fernet(base64.urlsafe_b64encode(secret))
