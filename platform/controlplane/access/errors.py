"""A refusal: the one error that the control plane raises on purpose.

401 token         no token, or one that is not good any more
404 not_found     there is none, or it is not yours: the two look alike
403 role          yours to see, not to do
400 invalid       the input cannot be used
409 conflict      not now: something else is going on, or things have changed
429 throttled     too often
502 engine        the engine refused, or did not answer
"""

from __future__ import annotations

from collections.abc import Mapping


class Refused(Exception):
    """The request cannot be done; `message` is one sentence that says what to do."""

    def __init__(
        self, status: int, code: str, message: str, fields: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.fields = dict(fields or {})
        """Form field to the sentence that belongs beside it."""


def not_found(what: str, name: object) -> Refused:
    """There is none, or it belongs to others: nobody can tell which."""
    return Refused(404, "not_found", f"there is no {what} {name} that you can see")


def invalid(message: str, field: str = "") -> Refused:
    """The input of one field cannot be used."""
    return Refused(400, "invalid", message, {field: message} if field else None)


def conflict(message: str) -> Refused:
    """Not now."""
    return Refused(409, "conflict", message)
