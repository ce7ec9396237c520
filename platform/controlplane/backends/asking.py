"""From the client's errors to those of the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controlplane.backends.errors import EngineAway, EngineRefused, NoSnapshot
from controlplane.resting import at_rest
from engine.rest.client import ClientError, EngineUnreachable, NotFound, Refused

GATEWAY_ERRORS = frozenset({502, 503, 504})
GONE = 410
"""How our engine says that there is no snapshot; a Flink cluster never does."""


@contextmanager
def asking(unknown: Callable[[str], Exception] = EngineRefused) -> Iterator[None]:
    """Turn the client's errors into the contract's; `unknown` is what a 404 means here."""
    try:
        with at_rest():
            yield
    except EngineUnreachable as error:
        raise EngineAway(str(error)) from error
    except NotFound as error:
        raise unknown(error.message) from error
    except Refused as error:
        if error.status in GATEWAY_ERRORS:
            raise EngineAway(error.message) from error
        kind = NoSnapshot if error.status == GONE else EngineRefused
        raise kind(error.message) from error
    except ClientError as error:
        raise EngineRefused(str(error)) from error
