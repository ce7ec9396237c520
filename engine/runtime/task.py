"""One subtask of a job, without any I/O: elements and calls in, elements and snapshots out.

    channels --deliver--> alignment --> operator chain --> outbox --> (shell moves it)
    source   --poll-----------------^        |
                                             +--at a barrier--> snapshots --> (shell writes, acks)
    coordinator --notify_complete--> sinks commit
    clock    --advance--> operators that asked for it (`next_timer`)
    requests --(shell runs them)--answer--> the head, when it waits for answers

    running --every input ended--> end_of_input --last snapshot complete--> done

A shell drives it: the worker with real threads and sockets, the simulation with a seed. The shell
gives no more input while the outbox is not empty, and delivers nothing from a blocked channel.

Order    the barrier leaves behind everything that the rows before it caused. After a barrier with
         `then` STOP or DRAIN a source reads nothing, until that checkpoint is aborted.
Errors   whatever an operator, source or sink raises passes through; `failed_operator` names it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import polars as pl

from engine.checkpoint.format.frozen import RestoredOperator, TaskSnapshot
from engine.elements import (
    MAX_TIME,
    MIN_TIME,
    AfterBarrier,
    Barrier,
    Batch,
    Element,
    EndOfInput,
    Idle,
    LatencyMarker,
    Micros,
    Watermark,
)
from engine.errors import InternalError
from engine.operators.asking.requests import Answer, Request
from engine.operators.sources.source import SourceRun
from engine.runtime.alignment import Aligned, Alignment
from engine.runtime.chain import Beside, Chain, Send
from engine.runtime.inputs import InputTimes
from engine.runtime.metrics import TaskMetrics
from engine.runtime.partitioners import partitioner
from engine.runtime.spec import BackendMaker, OutputEdge, TaskSpec
from engine.state.key_text import parsed_key
from engine.state.lookup import Rows, look_up

__all__ = ["Polling", "Task", "TaskSnapshot", "TaskSpec"]


@dataclass(frozen=True, slots=True)
class Polling:
    """What a poll of a source gave."""

    rows: int
    again_at: Micros
    """Processing time at which to poll again; MAX_TIME: not before another kind of call."""
    queued: int = 0
    """µs for which its rows had been ready to be read."""
    report: Micros | None = None
    """How far the source is, when the coordinator of its watermark group has to know."""


class Task:
    """One subtask. Owned by one thread."""

    def __init__(
        self,
        spec: TaskSpec,
        restored: Sequence[RestoredOperator] = (),
        new_backend: BackendMaker | None = None,
        now: Micros = MIN_TIME,
    ) -> None:
        """Open everything and put the restored state in place; sinks of subtask 0 recover here.

        Build all tasks of a job before any of them runs: a sink's recovery must be over before
        another subtask writes.
        """
        self.spec = spec
        self.outbox: deque[tuple[int, Element]] = deque()
        """(output channel, element), in order."""
        self.snapshots: deque[TaskSnapshot] = deque()
        """Taken at barriers; to be written and acknowledged."""
        self.requests: deque[Request] = deque()
        """To be run beside the subtask; what comes of each goes to `answer`."""
        self.end_of_input = False
        """Nothing but barriers can come any more."""
        self.done = False
        """The last snapshot is complete and committed."""
        self._alignment = Alignment(len(spec.inputs))
        self._times = InputTimes(len(spec.inputs))
        self._stop: Barrier | None = None
        self._newest_id = 0
        """Checkpoints up to this one have begun here, or been given up."""
        self._draining: Aligned | None = None
        """A barrier before which all rows in flight have to leave."""
        self._answers: list[Answer] = []
        beside = Beside(self.requests, self._pass)
        backend = new_backend or spec.state.new
        self._chain = Chain(spec, restored, self._sends(), backend, now, beside)
        self._source = self._chain.source
        self._waiting = self._chain.waiting
        self.metrics = TaskMetrics([link.context.metrics for link in self._chain.links])

    def __repr__(self) -> str:
        state = "done" if self.done else "ended" if self.end_of_input else "running"
        aligning = self._alignment.checkpoint_id
        return (
            f"Task({self.spec.vertex.name} {self.spec.subtask}, {state}, "
            f"watermark {self.watermark}, aligning {aligning}, outbox {len(self.outbox)})"
        )

    @property
    def is_source(self) -> bool:
        """Whether this subtask is polled instead of fed."""
        return self._source is not None

    @property
    def is_full(self) -> bool:
        """Whether it takes no rows before answers come."""
        return self._waiting is not None and self._waiting.is_full

    @property
    def watermark(self) -> Micros:
        """Event time at the head of the chain."""
        return self._chain.links[0].context.watermark

    @property
    def failed_operator(self) -> str | None:
        """Uid of the operator inside of which the last call raised."""
        return self._chain.current

    def blocked(self, channel: int) -> bool:
        """Whether nothing may be delivered from this channel now."""
        return self.is_full or self._alignment.blocks(channel)

    def deliver(self, channel: int, element: Element, now: Micros) -> None:
        """Take the next element of an input channel."""
        if self.blocked(channel):
            msg = f"task {self.spec.id} got {element!r} from channel {channel} while it is blocked"
            raise InternalError(msg)
        self._chain.now = now
        match element:
            case Batch(frame):
                self._times.on_batch(channel)
                self._chain.push(frame, self.spec.inputs[channel])
            case Watermark(time):
                self._say(self._times.on_watermark(channel, time))
            case Idle():
                self._say(self._times.on_idle(channel))
            case Barrier():
                self._take_snapshot(self._alignment.on_barrier(channel, element, now), now)
            case LatencyMarker(source, sent_at):
                self.metrics.on_latency(source, now - sent_at)
                self._mark(element)
            case EndOfInput():
                self._say(self._times.on_end_of_input(channel))
                self._take_snapshot(self._alignment.on_end_of_input(channel), now)
            case _:
                assert_never(element)

    def poll(self, now: Micros, max_rows: int, blocked: int = 0) -> Polling:
        """Read from the source.

        `blocked`: µs since the last poll in which the shell could not poll because outputs were
        full; they do not count towards idleness.
        """
        source = self._running_source()
        if self._stop is not None or self.end_of_input:
            return Polling(0, MAX_TIME)
        self._chain.now = now
        rows = 0
        self._chain.current = self._chain.links[0].chained.uid
        elements = source.poll(now, max_rows, blocked)
        self._chain.current = None
        for element in elements:
            if isinstance(element, Batch):
                rows += element.frame.height
                self._chain.push(element.frame, 0)
            else:
                self._say(element)
        self.metrics.pending_rows = source.pending_rows
        self.metrics.newest, self.metrics.ahead = source.newest, source.ahead
        if rows and source.newest is not None:
            self.metrics.fetch_lag = now - source.newest
        if source.skipped:
            self.metrics.operators[0].counters["numRecordsInErrors"] = source.skipped
        again_at = MAX_TIME if self.end_of_input else source.again_at
        return Polling(rows, again_at, source.queued, source.report)

    def mark(self, now: Micros, number: int) -> None:
        """Send a latency marker from a source, behind what was read; not after the last row."""
        if self._stop is None and not self.end_of_input:
            self._mark(LatencyMarker(self.spec.vertex.id, now, number))

    def _mark(self, marker: LatencyMarker) -> None:
        for output in self.spec.outputs:
            channel = output.channels[marker.number % len(output.channels)]
            self.outbox.append((channel, marker))

    def align(self, lowest: Micros) -> bool:
        """Hear how far the slowest source of the watermark group is; say whether to poll at once.

        Only reading waits for it: the output is the same, whenever this is called.
        """
        return self._running_source().align(lowest)

    def limit(
        self, rate: float | None, reading: int, now: Micros, speed: float | None = None
    ) -> None:
        """Read at most `rate` rows a second with all of the `reading` subtasks that still read.

        `speed`: how many times as fast as real time event time may pass.

        Only reading waits for it: the output is the same, whenever this is called.
        """
        self._running_source().limit(rate, reading, now, speed)

    def answer(self, answers: Iterable[Answer], now: Micros) -> None:
        """Take what came of requests. At any time; also while the outbox is not empty."""
        self._chain.now = now
        self._answers.extend(answers)
        self._take_answers()

    def _take_answers(self) -> None:
        # After its last barrier a task may not send any row: the snapshot has those in flight.
        if self._stop is not None or not self._answers:
            return
        answers, self._answers = self._answers, []
        self._chain.answer(answers)
        if self._draining is not None and not self._in_flight:
            self._take_snapshot(self._draining, self._chain.now)

    @property
    def _in_flight(self) -> int:
        return 0 if self._waiting is None else self._waiting.in_flight

    @property
    def next_timer(self) -> Micros:
        """Processing time at which `advance` has something to do; MAX_TIME for never."""
        # After its last barrier or row a task may not send any.
        return MAX_TIME if self.end_of_input or self._stop is not None else self._chain.wake_at

    def advance(self, now: Micros) -> None:
        """Processing time has come to `now`: call the operators that wait for it."""
        if self.next_timer <= now:
            self._chain.now = now
            self._chain.wake()

    def trigger(self, barrier: Barrier, now: Micros) -> None:
        """Begin a snapshot at a source: its barrier leaves here. Once: a repetition is ignored.

        What a second barrier of one checkpoint would stage is in no snapshot, yet committed by it.
        """
        self._running_source()
        if barrier.checkpoint_id <= self._newest_id:
            return
        self._newest_id = barrier.checkpoint_id
        self._chain.now = now
        if barrier.then is AfterBarrier.DRAIN and self.watermark != MAX_TIME:
            self._say(Watermark(MAX_TIME))
        self._take_snapshot(Aligned(barrier, now), now)

    def notify_complete(self, checkpoint_id: int) -> None:
        """A checkpoint is complete: commit what it staged, and end if it was the last."""
        self._chain.commit(checkpoint_id)
        if self._stop is not None and self._stop.checkpoint_id == checkpoint_id:
            self.done = True

    def notify_aborted(self, checkpoint_id: int) -> None:
        """A checkpoint will never be complete: stop waiting for its barriers, and read on."""
        self._alignment.abort(checkpoint_id)
        # Its barrier may still be on its way to a source.
        self._newest_id = max(self._newest_id, checkpoint_id)
        if self._draining is not None and self._draining.barrier.checkpoint_id == checkpoint_id:
            self._draining = None
        if self._stop is not None and self._stop.checkpoint_id == checkpoint_id:
            self._stop = None
            self._take_answers()

    def flush(self) -> None:
        """Have operators emit what they hold back, as before a barrier. At any time."""
        # After its last barrier a task may not send any row, nor after the end of its input.
        if self._stop is None and not self.end_of_input:
            self._chain.flush()

    def look_up(self, uid: str, name: str, group: int, given: Mapping[str, str], most: int) -> Rows:
        """What a key, written as text, has in a state of one operator.

        Raises KeyError for a state that is not here, ConfigError for a key that is none.
        """
        descriptor, handle = self._chain.state(uid, name)
        parts = parsed_key(name, descriptor.keys, given)
        key = (group, *(parts[column].item() for column in descriptor.keys))
        return look_up(handle, descriptor, key, most)

    def close(self) -> None:
        """Release everything. Called once, also after a failure."""
        self._chain.close()

    def _running_source(self) -> SourceRun:
        if self._source is None:
            msg = f"task {self.spec.id} is not a source; deliver elements to it"
            raise InternalError(msg)
        return self._source

    def _say(self, element: Element | None) -> None:
        """Let a control element pass, behind the rows that it came behind."""
        if element is None or isinstance(element, Batch | LatencyMarker):
            return
        waiting = self._waiting
        if waiting is None or isinstance(element, Barrier) or not waiting.hold(element):
            self._pass(element)

    def _pass(self, element: Watermark | Idle | EndOfInput | Barrier) -> None:
        """Let a control element pass the chain and leave on every channel."""
        match element:
            case Watermark(time):
                self._chain.advance(time)
            case Idle():
                self._chain.flush()
            case EndOfInput():
                self.end_of_input = True
        for output in self.spec.outputs:
            self.outbox.extend((channel, element) for channel in output.channels)

    def _take_snapshot(self, aligned: Aligned | None, now: Micros) -> None:
        """Steps of a barrier, all on the subtask's thread:

        1. Have operators emit what they hold back.
        2. Stage the rows of the sinks.
        3. Freeze every operator.
        4. Send the barrier on, behind everything that came before it.
        """
        if aligned is None:
            return
        barrier = aligned.barrier
        if barrier.then is AfterBarrier.DRAIN and self._in_flight:
            self._draining = aligned
            return
        self._draining = None
        # Step 1. Before the sinks, because they may be what it is emitted to.
        self._chain.flush()
        # Step 2. Before the freeze, because what it stages is part of the snapshot.
        self._chain.prepare(barrier.checkpoint_id)
        # Step 3. References only: writing them is the shell's work, on another thread.
        operators = self._chain.snapshot(barrier)
        self.snapshots.append(
            TaskSnapshot(self.spec.id, barrier, operators, aligned.first_barrier, now)
        )
        if barrier.then is not AfterBarrier.CONTINUE:
            self._stop = barrier
        # Step 4.
        self._pass(barrier)

    def _sends(self) -> dict[tuple[int, str], list[Send]]:
        sends: dict[tuple[int, str], list[Send]] = defaultdict(list)
        for output in self.spec.outputs:
            sends[output.edge.operator, output.edge.tag].append(self._send(output))
        return sends

    def _send(self, output: OutputEdge) -> Send:
        deal = partitioner(
            output.edge.partitioning,
            len(output.channels),
            self.spec.max_parallelism,
            self.spec.subtask,
        )

        def send(frame: pl.DataFrame) -> None:
            for target, rows in deal(frame):
                self.outbox.append((output.channels[target], Batch(rows)))

        return send
