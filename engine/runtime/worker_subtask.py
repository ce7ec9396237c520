"""The thread of one subtask: feeds a task from its mailbox, and empties its outbox.

    build ──ready──▶ (all workers are ready) ──go──▶ loop ──▶ finished | stopped | failed

    loop:  commands ▸ outbox ▸ one step (timers, an element, or a poll) ▸ snapshots ▸ wait

Order    commands run between two steps. While the outbox is not empty no input is fed: that is how
         backpressure travels from a channel without credits up to the sources.
Errors   whatever the task raises goes to `Reports.failed`, once, and ends the thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from engine.checkpoint.format.frozen import TaskSnapshot
from engine.checkpoint.restoring.restore import SubtaskRestore, read_restore
from engine.clock import monotonic, now_micros
from engine.elements import MAX_TIME, MIN_TIME, Barrier, Micros
from engine.errors import FunctionError
from engine.graph.jobgraph import TaskId
from engine.runtime.channels import CAPACITY
from engine.runtime.mailbox import Mailbox
from engine.runtime.metrics import Queues, TaskMetrics
from engine.runtime.source_batches import BatchMeter
from engine.runtime.spec import TaskSpec
from engine.runtime.task import Task
from engine.runtime.worker_exchange import Ports
from engine.runtime.worker_occupancy import Occupancy
from engine.runtime.worker_requests import RequestLoop

MICROS = 1_000_000
MARK_EVERY = MICROS
"""µs between two latency markers of a source: nothing beside its rows."""


class Reports(Protocol):
    """What a subtask tells its worker. Called on the subtask's thread."""

    def snapshot_taken(self, snapshot: TaskSnapshot, sync_ms: int) -> None:
        """Store this on another thread, then acknowledge it. The flow stood still for `sync_ms`."""

    def source_progressed(self, task: TaskId, watermark: Micros) -> None:
        """A source tells those that wait for it how far it is."""

    def input_ended(self, task: TaskId) -> None:
        """Nothing but barriers will come."""

    def finished(self, task: TaskId) -> None:
        """Everything is committed; the thread ends."""

    def failed(self, spec: TaskSpec, operator: str | None, error: BaseException) -> None:
        """The thread ends."""


class Subtask:
    """One subtask, its mailbox and its thread."""

    def __init__(self, spec: TaskSpec, reports: Reports, max_rows: int) -> None:
        outputs = sum(len(output.channels) for output in spec.outputs)
        self.spec = spec
        self.mailbox = Mailbox(len(spec.inputs), outputs, CAPACITY)
        self.occupancy = Occupancy(monotonic())
        self.batches = BatchMeter()
        self.ready = threading.Event()
        """Set once the task is built and its state restored."""
        self._restore: SubtaskRestore | None = None
        self._reports = reports
        self._max_rows = max_rows
        self._go = threading.Event()
        self._ports = Ports()
        self._task: Task | None = None
        self._stopping = False
        self._told_end = False
        self._poll_at = MIN_TIME
        self._marked_at = MIN_TIME
        self._blocked = Micros(0)
        self._requests: RequestLoop | None = None
        self._thread = threading.Thread(target=self._live, name=f"subtask {spec.id}", daemon=True)

    def __repr__(self) -> str:
        return f"Subtask({self._task or self.spec.id}, {self.mailbox})"

    def queues(self) -> Queues:
        """What waits to be taken, and to be sent. Any thread."""
        task = self._task
        leaving = [] if task is None else [element for _, element in task.outbox.copy()]
        return Queues.of(self.mailbox.queued(), leaving)

    @property
    def metrics(self) -> TaskMetrics | None:
        """Counters of the task; None until it is built. Any thread."""
        return self._task.metrics if self._task else None

    def start(self, restore: SubtaskRestore | None) -> None:
        """Begin to build the task, from what it finds in a snapshot, on its own thread."""
        self._restore = restore
        self._thread.start()

    def run(self, ports: Ports) -> None:
        """Let the task process; every task of the job is ready."""
        self._ports = ports
        self._go.set()

    def trigger(self, barrier: Barrier) -> None:
        """Have a source send a barrier; others get theirs from upstream. Any thread."""
        task = self._task
        if task is not None and task.is_source:
            self.mailbox.post(lambda: task.trigger(barrier, now_micros()))

    def complete(self, checkpoint_id: int) -> None:
        """Have the task commit a checkpoint. Any thread."""
        task = self._task
        if task is not None:
            self.mailbox.post(lambda: task.notify_complete(checkpoint_id))

    def abort(self, checkpoint_id: int) -> None:
        """Have the task forget a checkpoint, and poll at once. Any thread."""
        task = self._task
        if task is not None:
            self.mailbox.post(lambda: self._on_aborted(task, checkpoint_id))

    def align(self, lowest: Micros) -> None:
        """Have a source hear how far the slowest of its group is. Any thread."""
        task = self._task
        if task is not None:
            self.mailbox.post(lambda: self._on_aligned(task, lowest))

    def ask(self, question: Callable[[Task], None]) -> None:
        """Have something asked of the task between two steps. Any thread."""
        task = self._task
        if task is not None:
            self.mailbox.post(lambda: question(task))

    def limit(self, rate: float | None, reading: int, speed: float | None) -> None:
        """Have a source read at most so many rows a second, with its peers. Any thread."""
        self.mailbox.post(lambda: self._on_limited(rate, reading, speed))

    def _on_limited(self, rate: float | None, reading: int, speed: float | None) -> None:
        if self._task is not None:
            self._task.limit(rate, reading, now_micros(), speed)
            self._poll_at = MIN_TIME

    def _on_aligned(self, task: Task, lowest: Micros) -> None:
        if task.align(lowest):
            self._poll_at = MIN_TIME

    def _on_aborted(self, task: Task, checkpoint_id: int) -> None:
        task.notify_aborted(checkpoint_id)
        self._poll_at = MIN_TIME

    def stop(self) -> None:
        """Have the thread close its task and end. Any thread."""
        self.mailbox.post(self._stop)
        self._go.set()

    def _stop(self) -> None:
        self._stopping = True

    def join(self, timeout: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout)

    def _live(self) -> None:
        try:
            restored = read_restore(self._restore) if self._restore else ()
            task = Task(self.spec, restored, now=now_micros())
            self._task = task
            self.ready.set()
            self.occupancy.wait(False, monotonic())
            self._go.wait()
            self.occupancy.resume(monotonic())
            try:
                self._loop(task)
            finally:
                if self._requests is not None:
                    self._requests.close()
                task.close()
        except SystemExit as error:
            what = f"sys.exit({error.code!r})"
            msg = f"code of the job ended its thread: {what}; raise an error instead"
            self._fail(FunctionError(msg))
        except BaseException as error:  # noqa: BLE001 the edge of the subtask: everything is reported
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        operator = self._task.failed_operator if self._task else None
        self._reports.failed(self.spec, operator, error)

    def _loop(self, task: Task) -> None:
        while True:
            for command in self.mailbox.take_commands():
                command()
            self._report(task)
            self._ask(task)
            if self._stopping or task.done:
                return
            self._flush(task)
            if task.outbox:
                self._sleep(None, backpressured=True)
                continue
            if self.batches.is_open:
                self._end_batch(task)
            if not self._step(task):
                self._sleep(self._pause(task), backpressured=None if task.is_full else False)

    def _end_batch(self, task: Task) -> None:
        now, metrics = now_micros(), task.metrics
        self.batches.end(now)
        if metrics.newest is not None:
            metrics.emit_lag = now - metrics.newest

    def _report(self, task: Task) -> None:
        while task.snapshots:
            snapshot = task.snapshots.popleft()
            # It was just taken, by one command or one step that did nothing else.
            sync_ms = (now_micros() - snapshot.aligned) // 1000
            self._reports.snapshot_taken(snapshot, sync_ms)
        if task.end_of_input and not self._told_end:
            self._told_end = True
            self._reports.input_ended(self.spec.id)
        if task.done:
            self._reports.finished(self.spec.id)

    def _ask(self, task: Task) -> None:
        """Have the requests of the task run beside it; its mailbox gets what comes of them."""
        if not task.requests:
            return
        if self._requests is None:
            loop = self._requests = RequestLoop(
                lambda: self.mailbox.post(lambda: task.answer(loop.take(), now_micros())),
                f"requests {self.spec.id}",
            )
        self._requests.start(list(task.requests))
        task.requests.clear()

    def _flush(self, task: Task) -> None:
        """Send from the outbox, in order, as far as credits reach."""
        outbox = task.outbox
        while outbox and self.mailbox.spend(outbox[0][0]):
            channel, element = outbox.popleft()
            self._ports.outputs[channel].send(element)

    def _step(self, task: Task) -> bool:
        """Feed the task once; False when there is nothing to feed."""
        if task.next_timer != MAX_TIME and task.next_timer <= (now := now_micros()):
            task.advance(now)
            return True
        if task.is_source:
            return self._poll(task)
        found = self.mailbox.take_input(task.blocked)
        if found is None:
            return False
        channel, element = found
        task.deliver(channel, element, now_micros())
        self._ports.inputs[channel].taken()
        return True

    def _poll(self, task: Task) -> bool:
        now = now_micros()
        if now < self._poll_at:
            return False
        polling = task.poll(now, self._max_rows, self._blocked)
        self._blocked = Micros(0)
        self._poll_at = polling.again_at
        if polling.rows and now - self._marked_at >= MARK_EVERY:
            self._marked_at = now
            task.mark(now, now // MARK_EVERY)
        if polling.rows:
            self.batches.begin(now, polling.rows, polling.queued)
        if polling.report is not None:
            self._reports.source_progressed(self.spec.id, polling.report)
        return True

    def _pause(self, task: Task) -> float | None:
        """How long nothing can happen by itself, in seconds; None: until someone calls."""
        wake_at = min(self._poll_at if task.is_source else MAX_TIME, task.next_timer)
        if wake_at == MAX_TIME:
            return None
        return max(0.0, (wake_at - now_micros()) / MICROS)

    def _sleep(self, timeout: float | None, *, backpressured: bool | None) -> None:
        """Wait for news; None: the thread is at work, though somebody else does it."""
        if backpressured is not None:
            self.occupancy.wait(backpressured, monotonic())
        self.mailbox.wait(timeout)
        slept = self.occupancy.resume(monotonic())
        if backpressured:
            self._blocked = Micros(self._blocked + int(slept * MICROS))
