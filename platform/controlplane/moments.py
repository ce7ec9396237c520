"""Points in time as pages, sockets and plots carry them: whole epoch milliseconds, UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import overload

from django.utils import timezone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


@overload
def epoch_ms(moment: datetime) -> int: ...
@overload
def epoch_ms(moment: datetime | None) -> int | None: ...
def epoch_ms(moment: datetime | None) -> int | None:
    """The milliseconds of a moment; None stays None.

    >>> epoch_ms(datetime(1970, 1, 1, 0, 0, 1, 5_999, tzinfo=UTC))
    1005
    """
    # In whole numbers: a float of seconds would lose a millisecond now and then.
    return None if moment is None else (moment - EPOCH) // MILLISECOND


def now_ms() -> int:
    """The wall clock."""
    return epoch_ms(timezone.now())


def moment(ms: float) -> datetime:
    """The moment of so many milliseconds.

    >>> moment(1005).microsecond
    5000
    """
    return EPOCH + timedelta(milliseconds=ms)
