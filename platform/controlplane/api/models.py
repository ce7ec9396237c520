"""What the API gave for a request with an idempotency key.

Guarantee   Neither the key nor what was answered can be read from the database: the one is hashed,
            the other sealed with it. A new token may be in an answer.
"""

from __future__ import annotations

from django.db import models


class KeptAnswer(models.Model):
    """The answer to one request, for whoever sends it again."""

    key_hash = models.CharField(max_length=64, unique=True)
    """Of the key and of who sent it."""
    request_hash = models.CharField(max_length=64)
    """Of what was asked."""
    status = models.PositiveSmallIntegerField(default=0)
    """0 while the request is being answered."""
    held_until = models.DateTimeField()
    """Until then nobody else answers it; which request has it, too: no two say the same time."""
    sealed = models.BinaryField(default=bytes)
    kept_until = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.status}, kept until {self.kept_until:%Y-%m-%d %H:%M}"
