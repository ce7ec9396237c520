"""From requests to values: ids, queries, bodies. What does not fit is a BadRequest, one sentence.

Unknown query parameters and unknown fields of a body are ignored, and an empty body is an empty
object, as in Flink, whose command line sends a body with every GET.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, cast

from starlette.requests import Request

from engine.rest.errors import BadRequest
from engine.rest.service import EngineService

MAX_INT = 2**31 - 1

_HEX_ID = re.compile(r"[0-9a-f]{32}")
_Choice = TypeVar("_Choice", bound=StrEnum)


def service_of(request: Request) -> EngineService:
    """The service that the app was made for."""
    return cast("EngineService", request.app.state.service)


def hex_id(request: Request, name: str) -> str:
    """A path parameter of 32 hex digits: the id of a job, a vertex or a trigger."""
    value = str(request.path_params[name]).lower()
    if not _HEX_ID.fullmatch(value):
        msg = f"{name} must be 32 hex digits: got {value[:80]!r}; take it from a list of jobs"
        raise BadRequest(msg)
    return value


def number(request: Request, name: str) -> int:
    """A path parameter that is a number that is not negative."""
    return _number(name, str(request.path_params[name]))


def query_number(request: Request, name: str) -> int | None:
    """A query parameter that is a number that is not negative, if it is given."""
    value = request.query_params.get(name)
    return None if value is None else _number(name, value)


def query_list(request: Request, name: str) -> list[str]:
    """A query parameter of names: `a,b` or repeated."""
    given = ",".join(request.query_params.getlist(name))
    return [part for part in given.split(",") if part]


def choice(kind: type[_Choice], value: str, name: str) -> _Choice:
    """One of the values of an enum, in any case."""
    try:
        return kind(value.upper())
    except ValueError:
        allowed = ", ".join(kind)
        msg = f"{name} must be one of {allowed}: got {value[:80]!r}"
        raise BadRequest(msg) from None


@dataclass(frozen=True, slots=True)
class Body:
    """A JSON object sent by a client; a field that is null counts as absent."""

    fields: Mapping[str, object]

    def text(self, name: str) -> str | None:
        """A text, or None."""
        return self._typed(name, str, "a text")

    def flag(self, name: str) -> bool:
        """True or false; false when absent."""
        return bool(self._typed(name, bool, "true or false"))

    def count(self, name: str, least: int = 1, most: int = MAX_INT) -> int | None:
        """A whole number within limits, or None."""
        value = self._typed(name, int, "a whole number")
        if value is not None and not least <= value <= most:
            limit = f"at least {least}" if value < least else f"at most {most}"
            msg = f"field {name} must be {limit}: got {value}"
            raise BadRequest(msg)
        return value

    def number(self, name: str) -> float | None:
        """A number, or None."""
        value = self.fields.get(name)
        return self._typed(name, float if isinstance(value, float) else int, "a number")

    def hex_id(self, name: str) -> str | None:
        """An id of 32 hex digits, or None."""
        value = self.text(name)
        if value is not None and not _HEX_ID.fullmatch(value.lower()):
            msg = f"field {name} must be 32 hex digits: got {value[:80]!r}"
            raise BadRequest(msg)
        return value and value.lower()

    def texts(self, name: str) -> list[str]:
        """A list of texts; empty when absent."""
        value: Sequence[object] = self._typed(name, list, "a list of texts") or []
        if not all(isinstance(part, str) for part in value):
            msg = f"field {name} must be a list of texts: got {value!r:.80}"
            raise BadRequest(msg)
        return [str(part) for part in value]

    def object(self, name: str) -> Body:
        """An object within this one; empty when absent."""
        value: Mapping[str, object] = self._typed(name, dict, "an object") or {}
        return Body(value)

    def counts(self, name: str) -> dict[str, int]:
        """An object whose values are whole numbers from 1; empty when absent."""
        inner = self.object(name)
        found = {key: inner.count(key) for key in inner.fields}
        return {key: value for key, value in found.items() if value is not None}

    def settings(self, name: str) -> dict[str, str]:
        """An object whose values are texts, numbers or flags, read as texts."""
        value: Mapping[str, object] = self._typed(name, dict, "an object of settings") or {}
        return {key: _setting(key, part) for key, part in value.items()}

    def _typed(self, name: str, kind: type[_Typed], wanted: str) -> _Typed | None:
        value = self.fields.get(name)
        # A flag is an int to Python, but not to the sender.
        mixed_up = isinstance(value, bool) and kind is not bool
        if value is None or (isinstance(value, kind) and not mixed_up):
            return value
        msg = f"field {name} must be {wanted}: got {value!r:.80}"
        raise BadRequest(msg)


_Typed = TypeVar("_Typed")


async def body_of(request: Request) -> Body:
    """The JSON object that the client sent. Raises BadRequest."""
    content = await request.body()
    if not content.strip():
        return Body({})
    try:
        value = json.loads(content)
    except ValueError as error:
        msg = f"request body must be JSON: {error}; send an object, or nothing"
        raise BadRequest(msg) from None
    if not isinstance(value, dict):
        msg = f"request body must be a JSON object: got {type(value).__name__}"
        raise BadRequest(msg)
    return Body(value)


def shell_words(text: str, name: str) -> list[str]:
    """Arguments in one text, as older clients of Flink send them. Raises BadRequest.

    >>> shell_words("--speed 2 --name 'all flights'", "programArgs")
    ['--speed', '2', '--name', 'all flights']
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        msg = f"field {name} cannot be split: {error}; send a list as programArgsList"
        raise BadRequest(msg) from None


def _number(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit()):
        msg = f"{name} must be a whole number: got {value[:80]!r}"
        raise BadRequest(msg)
    return int(value)


def _setting(key: str, value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return str(value)
        case _:
            msg = f"setting {key} must be a text: got {value!r:.80}"
            raise BadRequest(msg)
