"""The fleet: connected task managers and workers, and who holds which slot.

    job masters ── start, kill, allocate ──▶ fleet ──control channel──▶ task managers, workers
                ◀─ on_worker_started, on_worker_message, on_worker_gone ──

Guarantee  a worker is told to be gone only when its process is: either its task manager has waited
           for it, or, when the task manager was lost, the fleet has looked for the process itself.
Order      one event loop; no method blocks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.clock import monotonic, now_ms
from engine.cluster.background import Background
from engine.cluster.machines import processes
from engine.cluster.machines.control_server import Peer
from engine.cluster.machines.scheduler import Allocation, Shortage, SlotPool
from engine.cluster.settings.cluster_settings import EVERY_SECOND, Heartbeats
from engine.cluster.store.rows import ProcessRow
from engine.cluster.store.store import Store
from engine.runtime.control import (
    Heartbeat,
    KillWorkers,
    Message,
    StartWorker,
    TaskManagerHello,
    Welcome,
    WorkerExited,
    WorkerHello,
    WorkerStarted,
)

log = logging.getLogger(__name__)

WORKER_PATIENCE = 2
"""A worker reports once a second, unless native code keeps the interpreter: allow for that, by so
many timeouts of a task manager."""

WORKER_SILENCE_S = 10.0
"""And never less: however soon a task manager counts as lost, a worker does not report oftener."""

START_SILENCE_S = 60.0
"""A worker that starts imports the job's modules before it speaks; then it is stopped or stuck."""

CHECKS = 10
"""So many looks fall into the timeout of a task manager."""


class WorkerListener(Protocol):
    """Who runs an attempt: told what its workers do."""

    def on_worker_started(self, slot: int, process: ProcessRow) -> None:
        """The process exists."""

    def on_worker_connected(self, slot: int, peer: Peer) -> None:
        """The worker can be talked to, and waits for Prepare."""

    def on_worker_message(self, slot: int, message: Message) -> None:
        """The worker said something."""

    def on_worker_gone(self, slot: int, reason: str) -> None:
        """The process does not run any more; called once per worker that was started."""


@dataclass(slots=True)
class TaskManagerState:
    """One connected task manager."""

    hello: TaskManagerHello
    peer: Peer
    process: ProcessRow | None
    heard: float
    """On the monotonic clock."""
    heard_ms: int
    beat: Heartbeat | None = None
    doomed: str | None = None
    """Why it is being ended."""


@dataclass(slots=True)
class _Hosted:
    """One worker that was started and is not gone."""

    listener: WorkerListener
    task_manager: str
    heard: float
    """On the monotonic clock."""
    process: ProcessRow | None = None
    speaks: bool = False
    """It has said something about its work."""
    doomed: bool = False
    """It is being ended."""


@dataclass(slots=True)
class Fleet:
    """All task managers and workers. Also the listener of the control server."""

    store: Store
    on_slots: Callable[[], None]
    """Called when slots became free."""
    heartbeats: Heartbeats = EVERY_SECOND
    slots: SlotPool = field(default_factory=SlotPool)
    task_managers: dict[str, TaskManagerState] = field(default_factory=dict)
    _workers: dict[tuple[str, int], _Hosted] = field(default_factory=dict)
    _work: Background = field(default_factory=Background)

    # For job masters.

    def allocate(self, attempt_id: str, count: int) -> Sequence[Allocation] | Shortage:
        """Take slots, or none."""
        return self.slots.allocate(attempt_id, count)

    def release(self, attempt_id: str) -> None:
        """Give slots back; others may be waiting for them."""
        self.slots.release(attempt_id)
        self.on_slots()

    def start(self, held: Allocation, spec: StartWorker, listener: WorkerListener) -> None:
        """Start the worker of an allocated slot; if that is lost by now, say so soon."""
        hosted = _Hosted(listener, held.task_manager, monotonic())
        self._workers[spec.attempt_id, spec.slot] = hosted
        if self.slots.holds(held):
            self.task_managers[held.task_manager].peer.send(spec)
        else:
            reason = f"task manager {held.task_manager} lost before the worker was started"
            loop = asyncio.get_running_loop()
            loop.call_soon(self._gone, spec.attempt_id, spec.slot, reason)

    def kill(self, attempt_id: str) -> None:
        """Kill the workers of an attempt; each is then reported as gone."""
        hosts = {
            hosted.task_manager
            for (attempt, _), hosted in self._workers.items()
            if attempt == attempt_id
        }
        for name in hosts & set(self.task_managers):
            self.task_managers[name].peer.send(KillWorkers(attempt_id))

    def dismiss(self, name: str, reason: str) -> bool:
        """End a task manager; False when none has that name."""
        state = self.task_managers.get(name)
        if state is None:
            return False
        if state.doomed is None:
            log.warning("ending task manager %s: %s", name, reason)
            state.doomed = reason
            if state.process is None:
                state.peer.cut()
            else:
                self._work.start(processes.end([state.process]))
        return True

    def close(self) -> None:
        """Hear nothing more: the job manager ends, and jobs stay as they are for the next one."""
        self._workers.clear()
        self.task_managers.clear()

    # From the control server.

    def on_peer(self, peer: Peer) -> None:
        """A task manager or worker said hello."""
        match peer.hello:
            case TaskManagerHello():
                self._welcome(peer, peer.hello)
            case WorkerHello(attempt_id, slot, pid):
                hosted = self._workers.get((attempt_id, slot))
                if hosted is None:
                    log.warning("worker %d cut: its attempt %s is over", pid, attempt_id)
                    peer.cut()
                else:
                    self._know(hosted, slot, pid)
                    hosted.listener.on_worker_connected(slot, peer)

    def on_message(self, peer: Peer, message: Message) -> None:
        """A peer said something else."""
        match peer.hello:
            case TaskManagerHello(name):
                state = self.task_managers.get(name)
                if state is not None and state.peer is peer:
                    self._on_task_manager(state, message)
            case WorkerHello(attempt_id, slot, _):
                hosted = self._workers.get((attempt_id, slot))
                if hosted is not None:
                    hosted.heard, hosted.speaks = monotonic(), True
                    hosted.listener.on_worker_message(slot, message)

    def on_gone(self, peer: Peer) -> None:
        """A connection ended. Of a worker its task manager tells more."""
        if isinstance(peer.hello, TaskManagerHello):
            state = self.task_managers.get(peer.hello.name)
            if state is not None and state.peer is peer:
                self._lose(state, state.doomed or "its process ended")

    # Task managers.

    def _welcome(self, peer: Peer, hello: TaskManagerHello) -> None:
        if hello.name in self.task_managers:
            log.warning(
                "task manager %s refused: its name is taken; pass another --name", hello.name
            )
            peer.cut()
            return
        process = processes.identify(hello.pid, f"task manager {hello.name}")
        self.task_managers[hello.name] = TaskManagerState(
            hello, peer, process, monotonic(), now_ms()
        )
        peer.send(Welcome(self.heartbeats.interval_ms))
        self.slots.register(hello.name, hello.slots)
        log.info("task manager %s joined with %d slots", hello.name, hello.slots)
        self.on_slots()

    def _on_task_manager(self, state: TaskManagerState, message: Message) -> None:
        state.heard, state.heard_ms = monotonic(), now_ms()
        match message:
            case Heartbeat():
                state.beat = message
            case WorkerStarted(attempt_id, slot, pid):
                hosted = self._workers.get((attempt_id, slot))
                if hosted is not None:
                    self._know(hosted, slot, pid)
            case WorkerExited(attempt_id, slot, pid, code):
                self.store.forget_process(pid)
                self._gone(attempt_id, slot, _end_in_words(pid, code))

    def _know(self, hosted: _Hosted, slot: int, pid: int) -> None:
        """Remember the process of a worker: it and its task manager both tell it."""
        if hosted.process is not None:
            return
        hosted.process = processes.identify(pid, f"worker of {hosted.task_manager}")
        if hosted.process is not None:
            self.store.add_process(hosted.process)
            hosted.listener.on_worker_started(slot, hosted.process)

    def _gone(self, attempt_id: str, slot: int, reason: str) -> None:
        hosted = self._workers.pop((attempt_id, slot), None)
        if hosted is not None:
            hosted.listener.on_worker_gone(slot, reason)

    def _lose(self, state: TaskManagerState, reason: str) -> None:
        name = state.hello.name
        log.warning("task manager %s lost: %s", name, reason)
        self.task_managers.pop(name, None)
        self.slots.lose(name)
        lost = [key for key, hosted in self._workers.items() if hosted.task_manager == name]
        self._work.start(self._bury(state, lost, f"task manager {name} lost: {reason}"))

    async def _bury(
        self, state: TaskManagerState, lost: list[tuple[str, int]], reason: str
    ) -> None:
        """Make sure that a lost task manager and its workers are gone, then say so."""
        hosted = [self._workers[key].process for key in lost if key in self._workers]
        rows = [row for row in (state.process, *hosted) if row is not None]
        await processes.end(rows)
        for row in rows:
            self.store.forget_process(row.pid)
        for attempt_id, slot in lost:
            self._gone(attempt_id, slot, reason)

    async def watch(self) -> None:
        """End processes that are silent: stopped or stuck. Runs for ever."""
        checked, pause = monotonic(), self.heartbeats.timeout_ms / 1_000 / CHECKS
        while True:
            await asyncio.sleep(pause)
            now = monotonic()
            # When we were asleep ourselves (a laptop's lid), their beats still wait to be read.
            late = max(0.0, now - checked - pause)
            checked = now
            self.store.catch_up()
            self.end_silent(now, late)

    def end_silent(self, now: float, late: float) -> None:
        """End what has said nothing for too long, not counting the `late` seconds.

        A process that is stopped does not die of its own accord, nor wake up again: it is killed.
        """
        timeout = self.heartbeats.timeout_ms / 1_000
        for name, state in self.task_managers.items():
            state.heard += late
            if now - state.heard > timeout:
                self.dismiss(name, f"it was silent for {timeout:g} s")
        for hosted in self._workers.values():
            hosted.heard += late
            patience = max(WORKER_PATIENCE * timeout, WORKER_SILENCE_S)
            allowed = patience if hosted.speaks else START_SILENCE_S
            if now - hosted.heard > allowed and hosted.process and not hosted.doomed:
                what, pid = hosted.process.what, hosted.process.pid
                log.warning("ending %s (process %d): it was silent for %g s", what, pid, allowed)
                hosted.doomed = True
                self._work.start(processes.end([hosted.process]))


def _end_in_words(pid: int, code: int) -> str:
    if code < 0:
        return f"worker process {pid} was killed by signal {-code}"
    return f"worker process {pid} ended with code {code}"
