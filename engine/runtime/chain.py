"""The operator chain of one subtask: frames pass from operator to operator by function calls.

    head --emit--> fed operators, depth first --emit--> ... --> output channels

Order    what an operator emits reaches everything behind it before the operator goes on. On a
         watermark the operators fire in topological order, each before those behind it, so rows
         that a firing emits are never judged by a watermark that they came with.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ParamSpec

import polars as pl

from engine.checkpoint.format.frozen import OperatorSnapshot, RestoredOperator
from engine.connectors.contract import SinkContext
from engine.elements import MAX_TIME, MIN_TIME, Barrier, Micros
from engine.errors import InternalError
from engine.graph.jobgraph import ChainedOperator
from engine.keygroups import KeyGroupRange
from engine.operators.asking.contract import AsyncOperator
from engine.operators.asking.requests import Answer, Control, Request
from engine.operators.contract import MAIN, Context, Operator
from engine.operators.sink import SinkOperator, SinkRun
from engine.operators.sources.source import SourceOperator, SourceRun
from engine.runtime.metrics import OperatorMetrics
from engine.runtime.spec import BackendMaker, TaskSpec
from engine.state.contract import Frozen, Increment, StateBackend, StateDescriptor
from engine.state.memory import FrozenValues

P = ParamSpec("P")

Send = Callable[[pl.DataFrame], None]
"""Takes the rows of one operator and tag to the channels of an output edge."""

Sends = Mapping[tuple[int, str], Sequence[Send]]
"""(index of the operator, tag) -> output edges."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Where the requests of an operator go, and the elements that it has held."""

    requests: deque[Request]
    release: Callable[[Control], None]


class OperatorContext(Context):
    """The surroundings of one operator in a chain."""

    def __init__(
        self,
        spec: TaskSpec,
        index: int,
        watermark: Micros,
        backend: StateBackend | None,
        beside: Beside,
    ) -> None:
        chained = spec.vertex.operators[index]
        self.subtask = spec.subtask
        self.parallelism = spec.vertex.parallelism
        self.max_parallelism = spec.max_parallelism
        self.key_groups: KeyGroupRange = spec.key_groups
        self.watermark = watermark
        self.now = MIN_TIME
        self.wake_at = MAX_TIME
        """When the operator wants to hear of processing time."""
        self.metrics = OperatorMetrics(chained.uid, chained.name)
        self.backend = backend
        self._beside = beside
        self.receivers: dict[str, list[Send]] = defaultdict(list)

    def emit(self, frame: pl.DataFrame, tag: str = MAIN) -> None:
        """Send rows to everything that is fed by this operator."""
        if not frame.height:
            return
        if tag == MAIN:
            self.metrics.rows_out += frame.height
            self.metrics.batches_out += 1
        for receive in self.receivers.get(tag, ()):
            receive(frame)

    def state(self, descriptor: StateDescriptor) -> object:
        """The handle of a keyed state."""
        if self.backend is None:
            msg = (
                f"operator {self.metrics.uid!r} asks for state {descriptor.name!r} that it does "
                "not declare; list it in its `states`"
            )
            raise InternalError(msg)
        return self.backend.state(descriptor)

    def wake(self, time: Micros) -> None:
        """Have the operator called when `now` has reached a time."""
        self.wake_at = min(self.wake_at, time)

    def ask(self, request: Request) -> None:
        """Have a coroutine run beside the subtask."""
        self._beside.requests.append(request)

    def release(self, element: Control) -> None:
        """Let an element go on that was held."""
        self._beside.release(element)

    def count(self, metric: str, amount: int) -> None:
        """Add to a counter."""
        self.metrics.counters[metric] += amount


@dataclass(frozen=True, slots=True)
class Link:
    """One operator of the chain, ready to run."""

    chained: ChainedOperator
    context: OperatorContext
    run: Operator | SourceRun | SinkRun

    def snapshot(self, increment: Increment | None) -> OperatorSnapshot:
        """References to everything that must survive, or to what of it has changed."""
        run = self.run
        return OperatorSnapshot(
            uid=self.chained.uid,
            watermark=self.context.watermark,
            key_groups=self.context.key_groups,
            states=tuple(map(self._own, self._frozen(increment))),
            splits=run.splits if isinstance(run, SourceRun) else {},
            committables=run.committables if isinstance(run, SinkRun) else (),
        )

    def _frozen(self, increment: Increment | None) -> Sequence[Frozen]:
        backend = self.context.backend
        if backend is None:
            return ()
        return backend.freeze() if increment is None else backend.freeze_increment(increment)

    def _own(self, state: Frozen) -> Frozen:
        """Broadcast state is the same everywhere: subtask 0 writes it for all."""
        if state.descriptor.is_broadcast and self.context.subtask != 0:
            return FrozenValues(state.descriptor, {})
        return state


class Chain:
    """All operators of one subtask. Owned by one thread."""

    def __init__(
        self,
        spec: TaskSpec,
        restored: Sequence[RestoredOperator],
        sends: Sends,
        new_backend: BackendMaker,
        now: Micros,
        beside: Beside,
    ) -> None:
        """Open every operator, from the last to the first, so that receivers are ready."""
        self.current: str | None = None
        """Uid of the operator that runs; after a failure, of the one that failed."""
        found = {operator.uid: operator for operator in restored}
        self.links: list[Link] = []
        for index, chained in enumerate(spec.vertex.operators):
            start = found.get(chained.uid, RestoredOperator(chained.uid))
            self.current = chained.uid
            self.links.append(_link(spec, index, start, new_backend, beside))
        self.now = now
        self._connect(sends)
        for link in reversed(self.links):
            self.current = link.chained.uid
            if isinstance(link.run, Operator):
                link.run.open(link.context)
        self.current = None

    @property
    def source(self) -> SourceRun | None:
        """The head, when it is a source."""
        run = self.links[0].run
        return run if isinstance(run, SourceRun) else None

    @property
    def waiting(self) -> AsyncOperator | None:
        """The head, when it is an operator that waits for answers."""
        run = self.links[0].run
        return run if isinstance(run, AsyncOperator) else None

    @property
    def sinks(self) -> list[SinkRun]:
        """The sinks of the chain."""
        return [link.run for link in self.links if isinstance(link.run, SinkRun)]

    @property
    def now(self) -> Micros:
        """Processing time, as the operators see it."""
        return self.links[0].context.now

    @now.setter
    def now(self, now: Micros) -> None:
        for link in self.links:
            link.context.now = now

    @property
    def wake_at(self) -> Micros:
        """When the first operator wants to hear of processing time; MAX_TIME for never."""
        return min(link.context.wake_at for link in self.links)

    def wake(self) -> None:
        """Call every operator that wanted to hear of processing time by now."""
        for link in self.links:
            context, run = link.context, link.run
            if context.wake_at <= context.now and isinstance(run, Operator):
                # Before the call, in which the operator may ask again.
                context.wake_at = MAX_TIME
                self._call(link, run.on_processing_time, context.now, context)

    def push(self, frame: pl.DataFrame, port: int) -> None:
        """Feed rows to the head: those of a source are what it emits."""
        link = self.links[0]
        if isinstance(link.run, SourceRun):
            link.context.emit(frame)
        else:
            self._feed(link, frame, port)

    def answer(self, answers: Sequence[Answer]) -> None:
        """Give the head what came of its requests."""
        link = self.links[0]
        if isinstance(link.run, AsyncOperator):
            self._call(link, link.run.on_answers, answers, link.context)

    def advance(self, time: Micros) -> None:
        """Event time has reached `time` at the head."""
        for link in self.links:
            if time <= link.context.watermark:
                continue
            link.context.watermark = time
            link.context.metrics.watermark_in = time
            if isinstance(link.run, Operator):
                self._call(link, link.run.on_watermark, time, link.context)
            link.context.metrics.watermark_out = time

    def flush(self) -> None:
        """Have every operator emit what it holds back."""
        for link in self.links:
            if isinstance(link.run, Operator):
                self._call(link, link.run.flush, link.context)

    def prepare(self, checkpoint_id: int) -> None:
        """Stage the rows of every sink."""
        for link in self.links:
            if isinstance(link.run, SinkRun):
                self._call(link, link.run.prepare, checkpoint_id)

    def commit(self, checkpoint_id: int) -> None:
        """Commit what every sink staged up to a checkpoint."""
        for link in self.links:
            if isinstance(link.run, SinkRun):
                self._call(link, link.run.commit, checkpoint_id)

    def snapshot(self, barrier: Barrier) -> tuple[OperatorSnapshot, ...]:
        """Freeze every operator, in the order of the chain."""
        base = barrier.base
        increment = None if base is None else Increment(barrier.checkpoint_id, base)
        return tuple(link.snapshot(increment) for link in self.links)

    def state(self, uid: str, name: str) -> tuple[StateDescriptor, object]:
        """A state of one operator, and its handle. Raises KeyError when there is none."""
        for link in self.links:
            if link.chained.uid == uid and isinstance(link.run, Operator):
                for descriptor in link.run.states:
                    if descriptor.name == name:
                        return descriptor, link.context.state(descriptor)
        raise KeyError(uid, name)

    def close(self) -> None:
        """Close every operator and its state, even when one fails; raise the first failure."""
        with ExitStack() as stack:
            for link in self.links:
                if link.context.backend is not None:
                    stack.callback(link.context.backend.close)
                stack.callback(link.run.close)

    def _connect(self, sends: Sends) -> None:
        for index, link in enumerate(self.links):
            for feed in link.chained.feeds:
                receivers = self.links[feed.operator].context.receivers[feed.tag]
                receivers.append(self._receiver(link, feed.port))
            for (operator, tag), edges in sends.items():
                if operator == index:
                    link.context.receivers[tag].extend(edges)

    def _receiver(self, link: Link, port: int) -> Send:
        return lambda frame: self._feed(link, frame, port)

    def _feed(self, link: Link, frame: pl.DataFrame, port: int) -> None:
        link.context.metrics.rows_in += frame.height
        link.context.metrics.batches_in += 1
        run = link.run
        if isinstance(run, SinkRun):
            self._call(link, run.write, frame)
        elif isinstance(run, Operator):
            self._call(link, run.on_batch, frame, port, link.context)

    def _call(self, link: Link, call: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run one operator, leaving its uid behind if it fails."""
        outer, self.current = self.current, link.chained.uid
        call(*args, **kwargs)
        self.current = outer


def _link(
    spec: TaskSpec,
    index: int,
    start: RestoredOperator,
    new_backend: BackendMaker,
    beside: Beside,
) -> Link:
    chained = spec.vertex.operators[index]
    operator = chained.operator
    backend = None
    if isinstance(operator, Operator) and operator.states:
        backend = new_backend(spec.key_groups)
        for descriptor in operator.states:
            for part in start.tables.get(descriptor.name, ()):
                backend.restore(descriptor, part)
            # A declared state is in every snapshot, even if the operator has not used it yet.
            backend.state(descriptor)
    context = OperatorContext(spec, index, start.watermark, backend, beside)
    match operator:
        case SourceOperator():
            run = SourceRun(
                operator,
                spec.subtask,
                spec.vertex.parallelism,
                start.splits,
                shared=spec.watermark_group is not None,
            )
            return Link(chained, context, run)
        case SinkOperator():
            return Link(
                chained, context, SinkRun(operator, _who(spec, context), start.committables)
            )
        case _:
            return Link(chained, context, operator)


def _who(spec: TaskSpec, context: OperatorContext) -> SinkContext:
    return SinkContext(
        job_id=spec.job_id,
        attempt_id=spec.attempt_id,
        subtask=spec.subtask,
        parallelism=spec.vertex.parallelism,
        count=context.count,
    )
