"""Live topics: their names, and the shape of what travels on each.

    table    {row key: {field: value}}       fleet, alerts, job.<id>.ops
    record   {field: value}                  job.<id>, replay.<id>, op.<uuid>
    log      {"events": [event, …]}          job.<id>.ckpt, job.<id>.events

    → {"op": "sub", "topics": {"fleet": null, "job.7.ops": 8812}}    null: snapshot; number: resume
    → {"op": "unsub", "topics": ["job.7.ops"]}
    ← {"k": "hello", "ts", "user", "build"}
    ← {"k": "snap",  "t", "seq", "ts", "d"}           the whole value of the topic
    ← {"k": "patch", "t", "prev", "seq", "ts", "d"}   only what changed since `prev`
    ← {"k": "event", "t", "prev", "seq", "ts", "d"}   one entry of a log
    ← {"k": "html",  "t", "target", "swap", "html"}   a fragment; needs no answer and has no `seq`
    ← {"k": "op",    "t", "seq", "ts", …Operation}    snapshot or news of one operation, whole
    ← {"k": "gone",  "t"}                             no such topic, or not yours (any more)
    ← {"k": "hb",    "ts"}                            every 5 s

Shapes   `<id>` is the primary key of the job or replay in the control plane's database, `<uuid>`
         that of the operation. A vertex id is the engine's (32 hex).
Merge    a patch is merged into the last value. In a table, a row that is null is gone; otherwise
         null means "not known" and is shown as a dash. Nested values (`ckpt`) are replaced whole.
Order    `seq` grows per topic. When `prev` is not the last `seq` that the browser has, something
         was missed: subscribe to the topic again with null. The server notices a gap on its own
         side of the socket too, and then sends a `snap` unasked.
Close    code 4401: not, or no longer, signed in; 4400: a message that is not of this protocol.
Units    rates are rows per second; `*_ms` at the end of a point in time is epoch ms, UTC; `*_ms` of
         a duration is ms; `busy`, `bp`, `idle` are percent of the busiest subtask; `speed` is event
         seconds per wall second. Unknown is null, never 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypedDict


class Shape(StrEnum):
    """How the value of a topic is kept and merged."""

    TABLE = "table"
    RECORD = "record"
    LOG = "log"


class Family(StrEnum):
    """The kinds of topics: what a subscriber must be allowed to see differs by it."""

    FLEET = "fleet"
    ALERTS = "alerts"
    JOB = "job"
    JOB_OPS = "job.ops"
    JOB_CHECKPOINTS = "job.ckpt"
    JOB_EVENTS = "job.events"
    OPERATION = "op"
    REPLAY = "replay"


SHAPES = {
    Family.FLEET: Shape.TABLE,
    Family.ALERTS: Shape.TABLE,
    Family.JOB: Shape.RECORD,
    Family.JOB_OPS: Shape.TABLE,
    Family.JOB_CHECKPOINTS: Shape.LOG,
    Family.JOB_EVENTS: Shape.LOG,
    Family.OPERATION: Shape.RECORD,
    Family.REPLAY: Shape.RECORD,
}

OF_JOBS = frozenset({Family.FLEET, Family.ALERTS})
"""Tables with a row per job, of which everybody gets the rows of the jobs that they may see."""
LOG_LENGTH = 100
"""Entries that a log's snapshot holds: as many as a page shows before it asks the database."""


class FleetRow(TypedDict, total=False):
    """One job in `fleet`, under its id."""

    name: str
    state: str  # Flink's job state of the live run, in capitals; "STOPPED" without a run
    why: str | None  # what is wrong with a job that has not ended, in one sentence
    why_ms: int | None  # since when
    goal_ms: int | None  # how far its watermark may be behind; null: nobody has said
    delay_ms: float | None  # newest event time the sources know, minus the watermark
    event_ms: float | None  # event-time position: the lowest watermark of the sources
    speed: float | None
    busy: float | None
    bp: float | None
    ckpt_ms: int | None  # end of the last completed checkpoint
    ckpt_dur: int | None
    restarts: int
    out: float | None
    # And "in": float | None, the rate of the sources. (`in` is a word of the language.)


class FleetSum(TypedDict, total=False):
    """Row "sum" of `fleet`, over the jobs that this user may see; slots are the cluster's."""

    running: int
    jobs: int
    attention: int | None  # jobs that need it
    ailing: str | None  # "2 down, 3 degraded", or "all is well"
    delay: dict[str, float | None]  # the largest delay of a job that runs, with its objective
    late: str | None  # whose that is
    ckpt_ms: int | None  # end of the last completed checkpoint that is oldest
    old: str | None  # whose that is
    slots: int | None
    slots_used: int | None
    task_managers: int | None
    engine: str  # "ok" or "away": whether the engine answered the last time it was asked
    at_ms: int  # when the collector looked last: with an old one, every figure here is old
    # And "in": float | None.


class AlertsRow(TypedDict, total=False):
    """One job in `alerts`, under its id; also `v<id>`: the latest value of that alert."""

    firing: int
    open: str  # differs when what is open does


class AlertsSum(TypedDict, total=False):
    """Row "sum" of `alerts`, over what this user may see; empty until somebody looked."""

    firing: int
    open: str
    at_ms: int  # when rules were looked at last


class LastCheckpoint(TypedDict):
    """Field `ckpt` of `job.<id>`: the last completed checkpoint."""

    id: int
    end_ms: int
    dur_ms: int
    bytes: int


class HeldBackRecord(TypedDict):
    """Field `held` of `job.<id>`: the operator that the others wait for."""

    vertex: str
    text: str  # one sentence, without figures that change at every look


class JobRecord(TypedDict, total=False):
    """Topic `job.<id>`."""

    state: str
    state_since_ms: int | None
    note: str | None  # why it is in this state, in one sentence: "waits for 4 slots, 2 free"
    held: HeldBackRecord | None
    why: str | None  # what is wrong, as in `fleet`
    why_ms: int | None
    out: float | None  # rows per second into the sinks
    delay_ms: float | None
    goal_ms: int | None  # how far its watermark may be behind
    event_ms: float | None
    speed: float | None
    pending: int | None  # rows that the sources know of and have not read
    ckpt: LastCheckpoint | None
    restarts: int
    uptime_ms: int | None
    run: int | None
    attempt: int | None
    # And "in": float | None, rows per second out of the sources.


class OperatorRow(TypedDict, total=False):
    """One vertex in `job.<id>.ops`, under the engine's vertex id."""

    out: float | None
    busy: float | None
    bp: float | None
    idle: float | None
    wm_ms: float | None  # lowest watermark of its subtasks
    skew: float | None  # rows per second of the subtask with the most, over the mean of all
    bytes: int | None  # state in the last completed checkpoint
    par: int
    running: int
    state: str
    # And "in": float | None.


class CheckpointEvent(TypedDict):
    """Entry of `job.<id>.ckpt`: sent when a checkpoint or savepoint starts, ends or fails.

    Two entries with the same `run` and `checkpoint` are the same checkpoint: the later one holds.
    """

    id: str
    run: int
    checkpoint: int
    kind: str  # "checkpoint" or "savepoint"
    status: str  # "in_progress", "completed", "failed"
    trigger_ms: int
    dur_ms: int | None
    bytes: int | None
    failure: str | None


class JobEvent(TypedDict, total=False):
    """Entry of `job.<id>.events`: what the timeline shows."""

    id: str  # stable: the same thing told twice has the same id
    at_ms: int
    until_ms: int | None  # for a band
    lane: str  # "dep" deploys and changes, "sav" savepoints, "rs" restarts, "ck" failed checkpoints
    kind: str  # mark: "flag", "diamond", "x", "ring", "band"
    tone: str  # "ink", "busy", "ok", "warn", "crit", "idle", "save"
    title: str
    text: str
    run: int | None


class OperationRecord(TypedDict, total=False):
    """Topic `op.<uuid>`, travels as `{"k": "op", "t", …these}`."""

    id: str
    kind: str
    job: int
    state: str  # pending, running, succeeded, failed, cancelled
    step: str
    text: str  # one sentence for the toast
    done: int | None
    total: int | None
    error: str | None
    url: str | None  # where the result can be seen


class ReplayRecord(TypedDict, total=False):
    """Topic `replay.<id>`."""

    status: str  # one of Replay.Status
    compared_ms: float | None  # when old and new output were compared last
    accepted: int  # kinds of differences
    event_ms: float | None
    live_ms: float | None
    delay_ms: float | None  # event time between the live job and the replay
    speed: float | None
    rate: float | None
    pct: float | None  # 0 to 100 of the way from the savepoint to the live job
    eta_low_s: float | None
    eta_high_s: float | None
    restarts: int  # of its run
    limit: float | None  # rows per second that it may read; 0: paused, null: no limit
    speed_limit: float | None  # times real time at which its event time may pass; null: no limit
    text: str | None  # "not catching up: …", or why it failed
    stalled: bool  # whether it does not catch up, and `text` says why


Payload = dict[str, Any]
"""A value or patch on its way: one of the shapes above."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A parsed topic name."""

    name: str
    family: Family
    ident: str
    """Id of the job or replay, uuid of the operation; empty for what is of all jobs."""

    @property
    def shape(self) -> Shape:
        """How its value is kept and merged."""
        return SHAPES[self.family]


_PATTERNS = (
    (re.compile(r"fleet()"), Family.FLEET),
    (re.compile(r"alerts()"), Family.ALERTS),
    (re.compile(r"job\.(\d{1,18})"), Family.JOB),
    (re.compile(r"job\.(\d{1,18})\.ops"), Family.JOB_OPS),
    (re.compile(r"job\.(\d{1,18})\.ckpt"), Family.JOB_CHECKPOINTS),
    (re.compile(r"job\.(\d{1,18})\.events"), Family.JOB_EVENTS),
    (re.compile(r"op\.([0-9a-f-]{32,36})"), Family.OPERATION),
    (re.compile(r"replay\.(\d{1,18})"), Family.REPLAY),
)


@lru_cache(maxsize=4_096)
def parse(name: str) -> Topic | None:
    """The topic of that name, or None when there can be none."""
    for pattern, family in _PATTERNS:
        if match := pattern.fullmatch(name):
            return Topic(name, family, match[1])
    return None


FLEET = "fleet"
ALERTS = "alerts"


def job(job_id: int) -> str:
    """Figures of one job."""
    return f"job.{job_id}"


def operators(job_id: int) -> str:
    """Figures of its operators."""
    return f"job.{job_id}.ops"


def checkpoints(job_id: int) -> str:
    """Its checkpoints as they happen."""
    return f"job.{job_id}.ckpt"


def events(job_id: int) -> str:
    """What happens to it."""
    return f"job.{job_id}.events"


def operation(operation_id: object) -> str:
    """Progress of one operation."""
    return f"op.{operation_id}"


def replay(replay_id: int) -> str:
    """Progress of one replay."""
    return f"replay.{replay_id}"
