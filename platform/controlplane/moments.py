"""Points in time as numbers since 1970 UTC, in whole ones.

Units    ms as pages, sockets and plots carry them; µs as event time is compared.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import overload

from django.utils import timezone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND, MICROSECOND = timedelta(milliseconds=1), timedelta(microseconds=1)


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


@overload
def epoch_us(moment: datetime) -> int: ...
@overload
def epoch_us(moment: datetime | None) -> int | None: ...
def epoch_us(moment: datetime | None) -> int | None:
    """The microseconds of a moment; None stays None.

    >>> epoch_us(datetime(1970, 1, 1, 0, 0, 1, 5_999, tzinfo=UTC))
    1005999
    """
    return None if moment is None else (moment - EPOCH) // MICROSECOND


def moment_us(us: int) -> datetime:
    """The moment of so many microseconds.

    >>> moment_us(1_005_999).microsecond
    5999
    """
    return EPOCH + timedelta(microseconds=us)
