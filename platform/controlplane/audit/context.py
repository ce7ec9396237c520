"""The id of the request that is being answered, for whoever writes an audit entry below it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_request_id: ContextVar[str] = ContextVar("request_id", default="")


def current_request_id() -> str:
    """The present request's id; empty outside a request."""
    return _request_id.get()


@contextmanager
def request_id(value: str) -> Iterator[None]:
    """Everything inside belongs to request `value`."""
    token = _request_id.set(value)
    try:
        yield
    finally:
        _request_id.reset(token)
