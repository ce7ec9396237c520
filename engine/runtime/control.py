"""The control channel: what job manager, task managers and workers tell each other.

    task manager ── TaskManagerHello, Heartbeat, WorkerStarted, WorkerExited ──▶ job manager
    task manager ◀─ Welcome, StartWorker, KillWorkers ────────────────────────── job manager
    worker ──────── WorkerHello, WorkerReady, Acknowledged, Declined,
                    SourceProgress, EndOfInputReached, TaskFinished, Metrics,
                    Found, Failed ─────────────────────────────────────────────▶ job manager
    worker ◀─────── Prepare, Run, Trigger, Completed, Aborted, Align, ReadLimit,
                    LookUp, Stop ─────────────────────────────────────────────── job manager

Shapes   one JSON object per line over a Unix socket: {"type": "Trigger", "checkpoint_id": 7, …}.
Order    a new task manager has no workers: whoever loses the job manager ends its workers first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from engine.errors import InternalError

if TYPE_CHECKING:  # not at run time: a task manager has no use for what this would load
    from engine.connectors.contract import Json

SOCKET_NAME = "control.sock"
MAX_LINE_BYTES = 64 << 20
"""A subtask's acknowledgement lists its files and committables: far less than this."""


@dataclass(frozen=True, slots=True)
class TaskManagerHello:
    """A task manager offers its slots."""

    name: str
    pid: int
    slots: int
    host: str


@dataclass(frozen=True, slots=True)
class Welcome:
    """The task manager is registered: it is to say so often that it is alive."""

    heartbeat_ms: int


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What one process uses now."""

    pid: int
    memory_bytes: int
    cpu_percent: float


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A task manager is alive; what it and its workers use. Workers by "attempt/slot"."""

    itself: ProcessUse
    workers: Mapping[str, ProcessUse]


@dataclass(frozen=True, slots=True)
class StartWorker:
    """Start the worker of one slot of an attempt. Passed on to the worker as its orders."""

    job_id: str
    attempt_id: str
    slot: int
    graph: str
    """Path of the pickled job graph."""
    code: str
    """Folder of the artifact: modules beside the job file are imported from there."""
    max_rows: int
    """Rows a source gives at most in one poll."""
    parallelism: Mapping[str, int]
    """Of each vertex, by uid of its head: the graph may have been built at another one."""
    log: str
    """File that takes what the worker prints."""
    python: str = ""
    """Interpreter of a job with packages of its own; empty: that of the task manager."""


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """A worker process exists."""

    attempt_id: str
    slot: int
    pid: int


@dataclass(frozen=True, slots=True)
class WorkerExited:
    """A worker process is gone. `code` is negative when a signal ended it."""

    attempt_id: str
    slot: int
    pid: int
    code: int


@dataclass(frozen=True, slots=True)
class KillWorkers:
    """Kill every worker of an attempt; each exit is then reported."""

    attempt_id: str


@dataclass(frozen=True, slots=True)
class WorkerHello:
    """A worker runs and will say more."""

    attempt_id: str
    slot: int
    pid: int


@dataclass(frozen=True, slots=True)
class Prepare:
    """The worker is expected and known: it may restore state and open sources and sinks.

    Without it a worker that its attempt has given up could still drop files of the next attempt.
    """

    restores: Mapping[str, Json]
    """`SubtaskRestore` as JSON by "<vertex>/<subtask>"; empty to start from nothing."""


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """State is restored, sinks have recovered, the worker listens for its peers."""


@dataclass(frozen=True, slots=True)
class Run:
    """Every worker is ready: connect to the peers and process."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Sources: send this barrier."""

    checkpoint_id: int
    kind: str
    then: str
    triggered_ms: int
    folder: str
    base: int | None


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A subtask's part of a snapshot is stored; `snapshot` is a `SubtaskSnapshot` as JSON."""

    checkpoint_id: int
    snapshot: Json


@dataclass(frozen=True, slots=True)
class Declined:
    """A subtask could not store its part of a snapshot."""

    checkpoint_id: int
    vertex: str
    subtask: int
    reason: str


@dataclass(frozen=True, slots=True)
class Completed:
    """A snapshot is complete: commit what it staged."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class Aborted:
    """A snapshot will never be complete."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """How far event time of a source subtask is, for the others of its watermark group."""

    vertex: str
    subtask: int
    watermark: int
    """µs; 2^63 - 1 when nobody has to wait for it."""


@dataclass(frozen=True, slots=True)
class Align:
    """Sources of a watermark group: the slowest of you is here."""

    group: str
    lowest: int
    """µs."""


@dataclass(frozen=True, slots=True)
class ReadLimit:
    """Subtasks of a source: read at most so many rows a second, all together, or so fast."""

    vertex: str
    rows_per_second: float | None
    """None: no limit; 0: nothing."""
    reading: int
    """How many of them have not read all their input."""
    times_real_time: float | None = None
    """How fast event time of each may pass; None: no limit."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """A subtask: say what a key has in one state of an operator."""

    number: int
    """Of the question."""
    vertex: str
    subtask: int
    operator: str
    state: str
    group: int
    """The key group."""
    key: Mapping[str, str]
    """Columns of the key to their values as text."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was looked up, or why it could not be."""

    number: int
    rows: Json
    """`StateRows` as JSON; None with a failure."""
    failure: str | None


@dataclass(frozen=True, slots=True)
class EndOfInputReached:
    """A subtask has read all its input, and still takes part in snapshots."""

    vertex: str
    subtask: int


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A subtask has committed everything and ended."""

    vertex: str
    subtask: int


@dataclass(frozen=True, slots=True)
class Metrics:
    """Numbers of the subtasks of one worker: {"<vertex>/<subtask>": {metric: value}}."""

    subtasks: Mapping[str, Mapping[str, float]]
    latencies: Mapping[str, Mapping[str, Mapping[str, float]]]
    """In ms, by source vertex: {"<vertex>/<subtask>": {source: {statistic: value}}}."""
    batches: Mapping[str, Mapping[str, Sequence[int]]]
    """Of sources, by second of the epoch: the fields of `source_batches.BatchSums`, since the last
    report."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A subtask, or the worker itself, cannot go on."""

    name: str
    """Type of the error."""
    domain: str
    message: str
    traceback: str
    vertex: str | None = None
    subtask: int | None = None
    operator: str | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The attempt is over: exit with code 0."""


Message = (
    TaskManagerHello
    | Welcome
    | Heartbeat
    | StartWorker
    | WorkerStarted
    | WorkerExited
    | KillWorkers
    | WorkerHello
    | Prepare
    | WorkerReady
    | Run
    | Trigger
    | Acknowledged
    | Declined
    | Completed
    | Aborted
    | SourceProgress
    | Align
    | ReadLimit
    | LookUp
    | Found
    | EndOfInputReached
    | TaskFinished
    | Metrics
    | Failed
    | Stop
)

_TYPES: Mapping[str, type[Message]] = {
    kind.__name__: kind
    for kind in (
        TaskManagerHello, Welcome, Heartbeat, StartWorker, WorkerStarted, WorkerExited, KillWorkers,
        WorkerHello, Prepare, WorkerReady, Run, Trigger, Acknowledged, Declined, Completed,
        Aborted, SourceProgress, Align, ReadLimit, LookUp, Found, EndOfInputReached,
        TaskFinished, Metrics, Failed, Stop,
    )
}  # fmt: skip


def to_line(message: Message) -> bytes:
    r"""Write a message as one line.

    >>> to_line(Completed(checkpoint_id=7))
    b'{"type":"Completed","checkpoint_id":7}\n'
    """
    body = {"type": type(message).__name__, **asdict(message)}
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes) -> Message:
    """Read a message. Raises InternalError for a line that is none.

    >>> from_line(b'{"type":"Completed","checkpoint_id":7}')
    Completed(checkpoint_id=7)
    """
    body = json.loads(line)
    kind = _TYPES.get(body.pop("type", None))
    if kind is None or set(body) != {field.name for field in fields(kind)}:
        msg = f"control message is not understood: got {line[:200]!r}"
        raise InternalError(msg)
    if kind is Heartbeat:
        workers = {worker: ProcessUse(**use) for worker, use in body["workers"].items()}
        return Heartbeat(ProcessUse(**body["itself"]), workers)
    return kind(**body)
