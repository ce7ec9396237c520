"""Requests that a real Flink answered, as our paths, and where answers differ on purpose."""

from __future__ import annotations

SCHEDULED_AT_ONCE = "a subtask is scheduled in the moment in which it is made"
NO_JVM = "a Python process has no garbage collectors to list"
NOT_A_NUMBER = "Flink writes a string only because it has no number: NaN"
NO_CHANGELOG = "there is no changelog backend"

GETS = {
    # Capture to path. `source` and `window` are the ids of the first and the last vertex.
    "20_overview": "/overview",
    "20_config": "/config",
    "20_v1_jobs": "/v1/jobs",
    "20_jobs_overview": "/jobs/overview",
    "21_job": "/jobs/{job}",
    "21_job_status": "/jobs/{job}/status",
    "22_job_plan": "/jobs/{job}/plan",
    "22_job_config": "/jobs/{job}/config",
    "22_job_exceptions_none": "/jobs/{job}/exceptions",
    "22_job_execution_result_running": "/jobs/{job}/execution-result",
    "23_checkpoints": "/jobs/{job}/checkpoints",
    "23_checkpoints_config": "/jobs/{job}/checkpoints/config",
    "23_checkpoint_details": "/jobs/{job}/checkpoints/details/1",
    "23_checkpoint_details_subtasks_v1": "/jobs/{job}/checkpoints/details/1/subtasks/{window}",
    "24_vertex_v1": "/jobs/{job}/vertices/{window}",
    "24_vertex_watermarks_v0": "/jobs/{job}/vertices/{source}/watermarks",
    "24_vertex_watermarks_v1": "/jobs/{job}/vertices/{window}/watermarks",
    "24_vertex_backpressure_v1_1st": "/jobs/{job}/vertices/{window}/backpressure",
    "24_vertex_taskmanagers_v1": "/jobs/{job}/vertices/{window}/taskmanagers",
    "24_vertex_metrics_list_v1": "/jobs/{job}/vertices/{window}/metrics",
    "24_vertex_subtasks_metrics_list_v1": "/jobs/{job}/vertices/{window}/subtasks/metrics",
    "24_vertex_subtask0_metrics_list_v1": "/jobs/{job}/vertices/{window}/subtasks/0/metrics",
    "25_vertex_metrics_get_v1": "/jobs/{job}/vertices/{window}/metrics?get=0.numRecordsIn",
    "25_vertex_subtasks_metrics_get_v1": (
        "/jobs/{job}/vertices/{window}/subtasks/metrics"
        "?get=numRecordsInPerSecond,busyTimeMsPerSecond&agg=min,max,avg,sum,skew"
    ),
    "25_vertex_subtasks_metrics_get_noagg_v1": (
        "/jobs/{job}/vertices/{window}/subtasks/metrics?get=numRecordsOut"
    ),
    "26_job_metrics_list": "/jobs/{job}/metrics",
    "26_job_metrics_get": "/jobs/{job}/metrics?get=uptime,numRestarts",
    "26_jobs_metrics_agg": "/jobs/metrics?get=uptime,numRestarts&agg=min,max,avg,sum",
    "27_jobmanager_metrics_list": "/jobmanager/metrics",
    "27_jobmanager_metrics_get": "/jobmanager/metrics?get=taskSlotsTotal,numRunningJobs",
    "27_taskmanagers": "/taskmanagers",
    "27_taskmanager": "/taskmanagers/localhost:tm-1-a1b2c3",
    "27_taskmanager_metrics_get": (
        "/taskmanagers/localhost:tm-1-a1b2c3/metrics?get=Status.Process.CPU.Load"
    ),
    "27_taskmanagers_metrics": "/taskmanagers/metrics",
    "11_jars_list": "/jars",
    "12_jar_plan_get": "/jars/{artifact}/plan",
}

_PERCENTILES = ("p50", "p90", "p95", "p99", "p999")
_AGGREGATES = ("", ".avg", ".max", ".median", ".min", ".p25", ".p75", ".p95", ".sum")
_FIGURES = (
    "alignment.duration",
    "alignment.persisted",
    "alignment.processed",
    "checkpoint_duration.async",
    "checkpoint_duration.sync",
    "checkpointed_size",
    "end_to_end_duration",
    "start_delay",
    "state_size",
)

DIFFERENT: dict[str, dict[str, str]] = {
    "23_checkpoints_config": {
        "missing $.changelog_periodic_materialization_interval": NO_CHANGELOG,
        "missing $.changelog_storage": NO_CHANGELOG,
    },
    "23_checkpoint_details_subtasks_v1": {
        f"type $.summary.{figure}.{percentile}: number": NOT_A_NUMBER
        for figure in _FIGURES
        for percentile in _PERCENTILES
    },
    "24_vertex_v1": {
        "missing $.subtasks[].status-duration.CREATED": SCHEDULED_AT_ONCE,
        **{
            f"missing $.aggregated.status-duration.CREATED{figure}": SCHEDULED_AT_ONCE
            for figure in _AGGREGATES
        },
    },
    "24_vertex_taskmanagers_v1": {
        f"missing $.taskmanagers[].aggregated.status-duration.CREATED{figure}": SCHEDULED_AT_ONCE
        for figure in _AGGREGATES
    },
    "27_taskmanager": {
        f"missing $.metrics.garbageCollectors[]{field}": NO_JVM
        for field in ("", ".count", ".name", ".time")
    },
}
