"""One transaction for a whole request, put down while an engine is asked.

    with whole_request() as held:     begun: on SQLite no other process can write
        …
        with at_rest():               committed: others write while the engine takes its time
            engine.overview()
        …                             begun again, once `held.back` has found all as it was
                                      committed, or rolled back: the rest of it as a whole

Guarantee  What is written after `held.may_be_kept()` is committed at the end or not at all: who has
           written, or stands in a transaction inside of this one, is not put down. Outside of
           `whole_request`, `at_rest` does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

from django.db import connection, transaction

HARMLESS = ("SELECT", "SAVEPOINT", "RELEASE", "ROLLBACK")
"""How statements begin that write nothing."""


class Held:
    """The transaction, and whether it can be put down now."""

    def __init__(self) -> None:
        self.was_put_down = False
        self.back: Callable[[], None] = lambda: None
        """Called when it has begun again; raises when what was kept is not so any more."""
        self._has_written = False
        self._atomic = transaction.atomic()

    def __enter__(self) -> Self:
        self._atomic.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._atomic.__exit__(kind, error, trace)

    def may_be_kept(self) -> None:
        """What was written so far may be committed before the end."""
        self._has_written = False

    def watch(self, execute: Callable[..., Any], sql: str, *more: Any) -> Any:
        """Runs a statement, and remembers when it writes."""
        self._has_written |= not sql.lstrip().upper().startswith(HARMLESS)
        return execute(sql, *more)

    def can_rest(self) -> bool:
        """Whether nothing would be torn apart."""
        return not self._has_written and connection.atomic_blocks[-1] is self._atomic

    def put_down(self) -> None:
        """Commit, and let go of what it locks."""
        self.was_put_down = True
        self._atomic.__exit__(None, None, None)

    def take_up(self) -> None:
        """Begin again."""
        self._atomic = transaction.atomic()
        self._atomic.__enter__()
        self.back()
        self.may_be_kept()


_HELD: ContextVar[Held | None] = ContextVar("held", default=None)


@contextmanager
def whole_request() -> Iterator[Held]:
    """One transaction, which `at_rest` may put down."""
    held = Held()
    token = _HELD.set(held)
    try:
        with connection.execute_wrapper(held.watch), held:
            yield held
    finally:
        _HELD.reset(token)


@contextmanager
def at_rest() -> Iterator[None]:
    """While somebody else is waited for, no lock is held."""
    held = _HELD.get()
    if held is None or not held.can_rest():
        yield
        return
    held.put_down()
    try:
        yield
    finally:
        held.take_up()
