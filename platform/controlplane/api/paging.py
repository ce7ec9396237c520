"""Lists page by page: each answer says where the next begins.

    GET /jobs/flights/runs?limit=50             {"items": […], "next": "WzQyXQ"}
    GET /jobs/flights/runs?limit=50&cursor=…    {"items": […], "next": null}

Guarantee   What is written meanwhile moves nothing: each row that was there is told once.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.utils.dateparse import parse_datetime
from ninja import Query, Schema

from controlplane.access.errors import Refused, invalid
from controlplane.moments import epoch_us

MAX_LIMIT = 200
DEFAULT_LIMIT = 50

Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")
Thing = TypeVar("Thing")
Place = tuple[int | str, ...]

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="rows of a page")]
Cursor = Annotated[str, Query(max_length=200, description="`next` of the page before")]


class Page(Schema, Generic[Item]):
    """Rows, and the cursor of those that follow."""

    items: list[Item]
    next: str | None


def page(
    rows: QuerySet[Row],
    show: Callable[[list[Row]], list[Item]],
    limit: int,
    cursor: str,
    *by: str,
) -> dict[str, Any]:
    """One page of `rows`, in the order of the fields `by`, the last of which is unique.

    `show` makes what is told of a page of rows. Raises Refused (400) for a foreign cursor.
    """
    ordered = rows.order_by(*by)
    if cursor:
        ordered = _behind(ordered, by, cursor)
    found = list(ordered[: limit + 1])
    more = len(found) > limit
    names = [name.lstrip("-") for name in by]
    last = [getattr(found[limit - 1], name) for name in names] if more else None
    return {"items": show(found[:limit]), "next": _encode(last) if last else None}


def part(
    rows: Sequence[Thing],
    place: Callable[[Thing], Place],
    limit: int,
    cursor: str,
) -> dict[str, Any]:
    """One page of rows that were worked out: in the order of `place`, which no two share.

    Raises Refused (400) for a foreign cursor.
    """
    if cursor:
        rows = _following(rows, place, cursor)
    shown = list(rows[:limit])
    more = len(rows) > limit
    return {"items": shown, "next": _encode(place(shown[-1])) if more else None}


def newest_first(at: datetime, key: int) -> Place:
    """The place of a row in a list that begins with the newest."""
    return -epoch_us(at), -key


def _following(
    rows: Sequence[Thing], place: Callable[[Thing], Place], cursor: str
) -> Sequence[Thing]:
    try:
        last = tuple(_decode(cursor))
        return [one for one in rows if place(one) > last]
    except (ValueError, TypeError, RecursionError):
        raise _foreign(cursor) from None


def _foreign(cursor: str) -> Refused:
    msg = f"cursor is of no page of this list: got {cursor[:40]!r}; begin without one"
    return invalid(msg, "cursor")


def _behind(rows: QuerySet[Row], by: tuple[str, ...], cursor: str) -> QuerySet[Row]:
    """The rows behind the cursor. Raises Refused (400) when it is of another list."""
    try:
        values = [_value(one) for one in _decode(cursor)]
        return rows.filter(_after(by, values))
    except (ValueError, TypeError, ValidationError, RecursionError):
        raise _foreign(cursor) from None


def _after(by: tuple[str, ...], values: list[Any]) -> Q:
    """Rows behind these values: a later first field, or the same and a later second."""
    behind, same = Q(), Q()
    for name, value in zip(by, values, strict=True):
        field = name.lstrip("-")
        step = Q(**{f"{field}__{'lt' if name.startswith('-') else 'gt'}": value})
        behind |= same & step
        same &= Q(**{field: value})
    return behind


def _encode(values: Sequence[Any]) -> str:
    text = json.dumps([one if isinstance(one, int) else str(one) for one in values])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(cursor: str) -> list[Any]:
    """Raises ValueError."""
    values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    if not isinstance(values, list):
        msg = "no list"
        raise ValueError(msg)
    return values


def _value(one: object) -> object:
    """A point in time is one again."""
    return (parse_datetime(one) or one) if isinstance(one, str) else one
