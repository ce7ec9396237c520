"""The dashboards: fleet, job, checkpoints, replay, control plane, and the sensors of the demo."""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.metrics.grafana.model import Choice, Dashboard, Marks, Panel
from controlplane.metrics.grafana.queries import JOB, events, jobs, lines

LIVE = (("purpose", "live"),)
OF_JOB = (("job", JOB),)
FIELD = "${__field.labels._field}"
CHOSEN = (Choice("job", "Job", jobs()),)


def _marks(*, of_job: bool) -> tuple[Marks, ...]:
    return (
        Marks("Deploys", "blue", events(["deploy", "replay"], of_job=of_job)),
        Marks("Savepoints", "green", events(["savepoint"], of_job=of_job)),
        Marks("Restarts", "red", events(["restart", "failure"], of_job=of_job)),
    )


def _job(title: str, field: str, unit: str, about: str = "") -> Panel:
    """A figure of every live job, as the collector sees it each second."""
    query = lines("engine", "job", [field], ["job"], where=LIVE)
    return Panel(title, query, unit, about=about)


def _of_job(title: str, fields: Sequence[str], unit: str, about: str = "") -> Panel:
    """Figures of the chosen job, as the collector sees them."""
    query = lines("engine", "job", fields, [], where=(*OF_JOB, *LIVE))
    return Panel(title, query, unit, FIELD if len(fields) > 1 else title, about)


def _operators(title: str, field: str, unit: str, about: str = "") -> Panel:
    query = lines("engine", "operator", [field], ["vertex"], where=(*OF_JOB, *LIVE))
    return Panel(title, query, unit, "${__field.labels.vertex}", about)


def _reported(title: str, fields: Sequence[str], unit: str, about: str = "") -> Panel:
    """What the engine's reporter says of the chosen job."""
    query = lines("metrics", "headwater_job", fields, [], where=OF_JOB, how="last")
    return Panel(title, query, unit, FIELD if len(fields) > 1 else title, about)


def _platform(title: str, fields: Sequence[str], unit: str, about: str = "") -> Panel:
    query = lines("platform", "controlplane", fields, [], how="max")
    return Panel(title, query, unit, FIELD if len(fields) > 1 else title, about)


FLEET = Dashboard(
    "headwater-fleet",
    "Headwater: fleet",
    "All live jobs.",
    (
        (
            _job("Rows read", "in", "rowsps"),
            _job("Rows written", "out", "rowsps"),
        ),
        (
            _job("Watermark delay", "delay_ms", "ms", about="How far event time is behind now."),
            _job("Rows that wait at sources", "pending", "short"),
        ),
        (
            _job("Busy", "busy", "percent", about="Of the busiest subtask."),
            _job("Backpressured", "bp", "percent", about="Of the subtask that waits most."),
        ),
        (
            Panel(
                "Restarts",
                lines("metrics", "headwater_job", ["numRestarts"], ["job"], how="last"),
            ),
            Panel(
                "Duration of checkpoints",
                lines("metrics", "headwater_job", ["lastCheckpointDuration"], ["job"], how="max"),
                "ms",
            ),
        ),
    ),
    marks=_marks(of_job=False),
)

JOB_PAGE = Dashboard(
    "headwater-job",
    "Headwater: job",
    "One live job and its operators.",
    (
        (
            _of_job("Rows", ["in", "out"], "rowsps"),
            _of_job("Watermark delay", ["delay_ms"], "ms", "How far event time is behind now."),
        ),
        (
            _operators("Busy, by operator", "busy", "percent"),
            _operators("Backpressured, by operator", "bp", "percent"),
        ),
        (
            _operators("Rows read, by operator", "in", "rowsps"),
            _operators("Rows written, by operator", "out", "rowsps"),
        ),
        (
            _of_job("Rows that wait at sources", ["pending"], "short"),
            _reported("Restarts and rescales", ["numRestarts", "numRescales"], "short"),
        ),
        (
            Panel(
                "Memory of workers",
                lines(
                    "metrics", "headwater_worker", ["Status.Process.Memory.Resident"],
                    ["job_id", "slot"], how="last",
                ),
                "bytes",
                "slot ${__field.labels.slot} of ${__field.labels.job_id}",
                "Of all jobs: a worker is named by the engine's id of its job.",
            ),
        ),
    ),
    CHOSEN,
    _marks(of_job=True),
)  # fmt: skip

CHECKPOINTS = Dashboard(
    "headwater-checkpoints",
    "Headwater: checkpoints",
    "Checkpoints of one job: how long, how large, how many failed.",
    (
        (
            _reported("Duration", ["lastCheckpointDuration"], "ms"),
            _reported(
                "Size",
                ["lastCheckpointSize", "lastCheckpointFullSize"],
                "bytes",
                "What the checkpoint wrote, and all that it holds.",
            ),
        ),
        (
            _reported(
                "Phases",
                [
                    "lastCheckpointStartDelay",
                    "lastCheckpointAlignmentTime",
                    "lastCheckpointSyncDuration",
                    "lastCheckpointAsyncDuration",
                ],
                "ms",
                "Each of the subtask that took longest.",
            ),
            _reported(
                "Checkpoints",
                [
                    "numberOfCompletedCheckpoints",
                    "numberOfFailedCheckpoints",
                    "numberOfInProgressCheckpoints",
                ],
                "short",
            ),
        ),
    ),
    CHOSEN,
    _marks(of_job=True),
)

REPLAY = Dashboard(
    "headwater-replay",
    "Headwater: replays",
    "Replays of one job beside its live run.",
    (
        (
            Panel(
                "Event time",
                lines("engine", "job", ["event_ms"], ["purpose", "run"], where=OF_JOB, how="last"),
                "dateTimeAsIso",
                "${__field.labels.purpose} ${__field.labels.run}",
                "How far each run is; a replay has caught up when it meets the live one.",
            ),
            Panel(
                "Speed",
                lines(
                    "engine", "job", ["speed"], ["run"], where=(*OF_JOB, ("purpose", "replay"))
                ),
                "short",
                "run ${__field.labels.run}",
                "Seconds of event time in a second.",
            ),
        ),
        (
            Panel(
                "Rows read",
                lines("engine", "job", ["in"], ["purpose", "run"], where=OF_JOB),
                "rowsps",
                "${__field.labels.purpose} ${__field.labels.run}",
            ),
            Panel(
                "Rows that wait at sources",
                lines("engine", "job", ["pending"], ["purpose", "run"], where=OF_JOB),
                "short",
                "${__field.labels.purpose} ${__field.labels.run}",
            ),
        ),
    ),
    CHOSEN,
    _marks(of_job=True),
)  # fmt: skip

CONTROL_PLANE = Dashboard(
    "headwater-control-plane",
    "Headwater: control plane",
    "How late the control plane itself is.",
    (
        (
            _platform("Age of the operation queue", ["operation_queue_age_seconds"], "s"),
            _platform("Operations under way", ["operations_unfinished"], "short"),
        ),
        (
            Panel(
                "Duration of operations",
                lines("platform", "operation", ["duration_seconds"], ["kind", "state"], how="max"),
                "s",
                "${__field.labels.kind} ${__field.labels.state}",
            ),
            _platform("Lag of the collector", ["collector_lag_seconds"], "s"),
        ),
        (
            _platform("Engines", ["engines", "engines_away"], "short"),
            _platform("Live runs", ["jobs_running", "jobs_not_running"], "short"),
        ),
        (
            Panel(
                "Connected tabs",
                lines("platform", "process", ["socket_clients"], ["process"], how="last"),
                "short",
                "process ${__field.labels.process}",
            ),
            Panel(
                "Points that engines could not report",
                lines("metrics", "headwater_jobmanager", ["reporterPointsDropped"], [], how="last"),
                "short",
                "dropped",
            ),
        ),
    ),
    marks=_marks(of_job=False),
    span="now-6h",
)

SENSORS = Dashboard(
    "headwater-sensors",
    "Headwater: sensors demo",
    "What the sensors job of the demo writes.",
    (
        (
            Panel(
                "Readings",
                lines("outputs", "sensors_raw", ["value"], ["sensor"]),
                legend="${__field.labels.sensor}",
            ),
            Panel(
                "Amplified",
                lines("outputs", "sensors_amplified", ["value"], ["sensor"]),
                legend="${__field.labels.sensor}",
            ),
        ),
        (
            Panel(
                "Sum of each second",
                lines("outputs", "sensors_sums", ["sum"], ["sensor"]),
                legend="${__field.labels.sensor}",
            ),
            Panel(
                "Readings of each second",
                lines("outputs", "sensors_sums", ["n"], ["sensor"]),
                legend="${__field.labels.sensor}",
            ),
        ),
    ),
    marks=_marks(of_job=False),
    span="now-15m",
)

DASHBOARDS = (FLEET, JOB_PAGE, CHECKPOINTS, REPLAY, CONTROL_PLANE, SENSORS)
