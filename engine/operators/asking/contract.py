"""The contract of operators that wait for answers.

    on_batch ──ctx.ask(Request)──▶ the shell runs the coroutine ──Answer──▶ on_answers ──▶ rows
    Watermark, Idle, EndOfInput ──hold──▶ behind the rows they came behind ──ctx.release──▶ on

The operator starts nothing itself. A worker runs the coroutines in an event loop; the simulation
answers in the order of a seed. Barriers are not held: rows whose answers are awaited are state.

Needs    to be the head of its chain, so that all that follows can wait for it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from engine.operators.asking.requests import Answer, Control
from engine.operators.contract import Context, Operator


class AsyncOperator(Operator):
    """An operator that waits for answers."""

    @property
    @abstractmethod
    def in_flight(self) -> int:
        """How many rows wait for answers, or behind rows that do."""

    @property
    @abstractmethod
    def is_full(self) -> bool:
        """Whether no more rows may come for now. Asked before every element."""

    @abstractmethod
    def hold(self, element: Control) -> bool:
        """Keep an element until the rows before it have left; False when none is under way."""

    @abstractmethod
    def on_answers(self, answers: Sequence[Answer], ctx: Context) -> None:
        """Take answers, in the order in which they came; send rows and release elements."""
