"""`Idempotency-Key`: the same key is the same operation, however often the request is sent.

Guarantee   Keys belong to the person who sends them: nobody meets an operation of somebody else.
"""

from __future__ import annotations

from typing import Annotated

from django.contrib.auth.models import User
from ninja import Header

IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=64,
        pattern=r"^[\x21-\x7e]*$",
        description="sent again with the same key, the request starts nothing twice",
    ),
]


def key_of(user: User, given: str) -> str:
    """The operation's key; empty when none was given."""
    return f"api:{user.pk}:{given}" if given else ""
