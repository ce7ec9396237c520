"""The contract of operators: frames in, frames out, state through the context, nothing else.

An operator has no clock, thread, socket, file or state of its own; whatever must survive lives in
`ctx.state(...)`, and the runtime snapshots it between two calls. An operator object is pickled into
the job graph and copied for each subtask, so its attributes are settings, and what it gathers from
several batches before it emits: `flush` empties its hands before a snapshot, so nothing is lost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import polars as pl

from engine.elements import Micros
from engine.keygroups import KeyGroupRange
from engine.operators.asking.requests import Control, Request
from engine.state.contract import StateDescriptor

MAIN = "main"
"""The tag of an operator's ordinary output; any other tag is a side output."""


class Context(ABC):
    """All that an operator sees of its surroundings."""

    subtask: int
    parallelism: int
    max_parallelism: int
    key_groups: KeyGroupRange
    """The key groups of this subtask; all of them for an operator that is not keyed."""
    watermark: Micros
    """The watermark that this operator has reached: the smallest over its inputs."""
    now: Micros
    """Processing time when the current call began. What depends on it is exempt from the law of the
    same output, and says so."""

    @abstractmethod
    def emit(self, frame: pl.DataFrame, tag: str = MAIN) -> None:
        """Send rows downstream. Empty frames are ignored."""

    @abstractmethod
    def state(self, descriptor: StateDescriptor) -> object:
        """The handle of a keyed state of this operator."""

    @abstractmethod
    def wake(self, time: Micros) -> None:
        """Have `on_processing_time` called once `now` has reached `time`; the earliest wish counts.

        A wish is forgotten when it is met, and is not part of a snapshot.
        """

    @abstractmethod
    def ask(self, request: Request) -> None:
        """Have a coroutine run beside the subtask; for operators that wait for answers."""

    @abstractmethod
    def release(self, element: Control) -> None:
        """Let an element go on that was held; for operators that wait for answers."""

    @abstractmethod
    def count(self, metric: str, amount: int) -> None:
        """Add to a counter of this operator, e.g. `numLateRecordsDropped`."""


class Operator(ABC):
    """Transforms batches. Subclasses override what they need; only `on_batch` is required."""

    name: ClassVar[str]
    """Kind of operator, for plans and pages: e.g. "filter", "window"."""

    compiled: ClassVar[bool] = False
    """Whether it runs compiled loops over rows: workers load them first, see `engine.kernels`."""

    @property
    def allowed_lateness(self) -> Micros:
        """How far a watermark may be past the event time of a result that is still corrected."""
        return Micros(0)

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """Every state it keeps; none for a stateless one. Known when the graph is built."""
        return ()

    def open(self, ctx: Context) -> None:
        """Called once on the subtask's thread, after restore and before the first element."""
        return

    @abstractmethod
    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Take rows that arrived at input `port` (0; or 0 left and 1 right)."""

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        """Event time has reached `time`; called before the watermark goes downstream.

        The last call has MAX_TIME, at the end of input or when a job is drained.
        """
        return

    def flush(self, ctx: Context) -> None:
        """Emit what was gathered and held back, if anything.

        Called in topological order before operators are frozen and the barrier goes downstream; and
        before idleness does, because others may then go past the event time of what is held.
        """
        return

    def on_processing_time(self, now: Micros, ctx: Context) -> None:
        """The time that was asked for with `ctx.wake` has come.

        Never called after the end of input, nor after the barrier of a stop.
        """
        return

    def close(self) -> None:
        """Called once, also after a failure."""
        return

    def describe(self) -> Mapping[str, str]:
        """Short facts for people: e.g. {"window": "tumbling 1 d"}."""
        return {}
