"""One connection to a control plane: requests with a token, answers as JSON, pages joined.

Guarantee  what changes something is sent with a key of its own: sent again after a lost answer,
           it does nothing twice.
Errors     ControlError
            +-- ControlAway    nobody answered, or somebody who is no control plane
            +-- ControlRefused it said no: one sentence
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from engine.errors import ConfigError, ExternalError

TIMEOUT_S = 30.0
"""An upload of 16 MiB, or a question that the engine answers."""

RETRY_AFTER_S = (0.2, 1.0, 3.0)
"""A web process that restarts is back within a few seconds."""


class ControlError(ExternalError):
    """The control plane did not do what was asked."""


class ControlAway(ControlError):
    """Nobody answered, or somebody who is no control plane."""


class ControlRefused(ControlError):
    """It said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Control:
    """A control plane at an address."""

    def __init__(self, url: str, token: str, transport: httpx.BaseTransport | None = None) -> None:
        self.url = _checked(url)
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1/",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=TIMEOUT_S,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def get(self, path: str, **query: str | float) -> Any:
        """What is at `path`. Raises ControlError."""
        return self._answer("GET", path, params=_given(query))

    def each(self, path: str, most: int, **query: str | int) -> Iterator[Mapping[str, Any]]:
        """The rows of a list, page by page, at most so many."""
        cursor: str | None = ""
        while cursor is not None and most > 0:
            found = self.get(path, **query, limit=min(most, 200), cursor=cursor)
            yield from found["items"]
            most, cursor = most - len(found["items"]), found["next"]

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Ask for something, once however often it is sent. Raises ControlError."""
        return self._answer("POST", path, json=_given(body or {}), headers=_new_key())

    def upload(self, path: str, filename: str, content: bytes, **form: str | int) -> Any:
        """Send a file, once however often it is sent. Raises ControlError."""
        files = {"file": (filename, content)}
        data = {name: str(one) for name, one in _given(form).items()}
        return self._answer("POST", path, files=files, data=data, headers=_new_key())

    def _answer(self, method: str, path: str, **options: Any) -> Any:
        waits = iter(RETRY_AFTER_S)
        while True:
            try:
                answer = self._http.request(method, path, **options)
            except httpx.TransportError as error:
                wait_s = next(waits, None)
                if wait_s is None:
                    raise self._away(error) from error
                time.sleep(wait_s)
            else:
                return self._read(answer)

    def _read(self, answer: httpx.Response) -> Any:
        try:
            found = answer.json() if answer.content else None
        except ValueError:
            found = None
        if answer.is_success and (found is not None or answer.status_code == 204):
            return found
        if isinstance(found, dict) and isinstance(found.get("detail"), str):
            raise ControlRefused(answer.status_code, found["detail"])
        msg = (
            f"{self.url} is no control plane: it answered {answer.status_code}; "
            "give the address of the dashboard"
        )
        raise ControlAway(msg)

    def _away(self, error: httpx.TransportError) -> ControlAway:
        why = str(error) or type(error).__name__
        return ControlAway(f"control plane at {self.url} does not answer: {why}; is it up?")


def _checked(url: str) -> str:
    """The address as it is used. Raises ConfigError."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        msg = f"address must be a URL: got {url!r}; give e.g. --control http://127.0.0.1:8000"
        raise ConfigError(msg)
    return url.rstrip("/")


def _new_key() -> dict[str, str]:
    return {"Idempotency-Key": uuid.uuid4().hex}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without what was not given."""
    return {name: one for name, one in values.items() if one not in (None, "")}
