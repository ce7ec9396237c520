"""What a worker reports about its subtasks once a second, under Flink's names.

`rest/model/metrics.py` says what each of them is.

Units    watermarks are engine microseconds (half-open) and absent while nothing is known; rates are
         per second over the time since the last report; counters grow from the attempt's start.
Shapes   metrics of one operator of a chain are called `<operator name>.<metric>`.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.elements import MIN_TIME
from engine.runtime.channels import CAPACITY
from engine.runtime.metrics import OperatorMetrics, Queues, TaskMetrics
from engine.runtime.quantiles import histogram
from engine.runtime.spec import TaskSpec
from engine.runtime.worker_occupancy import Occupancy

Numbers = dict[str, float]

INPUT, OUTPUT = "Shuffle.Netty.Input.Buffers", "Shuffle.Netty.Output.Buffers"
"""Flink's names of the places; one buffer is one element here."""


class MetricReader:
    """Reads the numbers of one subtask; remembers the last ones for rates."""

    def __init__(self, spec: TaskSpec, occupancy: Occupancy, started: float) -> None:
        self._spec = spec
        self._occupancy = occupancy
        self._started = started
        self._last: tuple[float, Mapping[str, float]] = (started, {})

    def read(self, metrics: TaskMetrics, queues: Queues, now: float) -> Numbers:
        """All numbers of the subtask now."""
        numbers = self._counters(metrics)
        then, before = self._last
        self._last = now, numbers
        elapsed = max(now - then, 1e-6)
        rates = {
            f"{name}PerSecond": (value - before.get(name, 0)) / elapsed
            for name, value in numbers.items()
        }
        times = _watermarks(metrics.operators)
        source = _source(metrics)
        head = {f"{metrics.operators[0].name}.{name}": value for name, value in source.items()}
        waiting = self._waiting(queues)
        return numbers | rates | times | source | head | waiting | self._time(now)

    def _counters(self, metrics: TaskMetrics) -> Numbers:
        sending = {output.edge.operator for output in self._spec.outputs}
        numbers: Numbers = {
            "numRecordsIn": metrics.operators[0].rows_in,
            "numRecordsOut": sum(metrics.operators[index].rows_out for index in sending),
        }
        for operator in metrics.operators:
            numbers[f"{operator.name}.numRecordsIn"] = operator.rows_in
            numbers[f"{operator.name}.numRecordsOut"] = operator.rows_out
            for counter, value in list(operator.counters.items()):
                numbers[f"{operator.name}.{counter}"] = value
        return numbers

    def _time(self, now: float) -> Numbers:
        shares = self._occupancy.shares(now)
        backpressured, idle = self._occupancy.totals(now)
        return {
            "busyTimeMsPerSecond": shares.busy,
            "backPressuredTimeMsPerSecond": shares.backpressured,
            "idleTimeMsPerSecond": shares.idle,
            "isBackPressured": self._occupancy.is_backpressured,
            "accumulateBackPressuredTimeMs": int(1000 * backpressured),
            "accumulateIdleTimeMs": int(1000 * idle),
            "accumulateBusyTimeMs": int(1000 * max(now - self._started - backpressured - idle, 0)),
        }

    def _waiting(self, queues: Queues) -> Numbers:
        room = CAPACITY * len(self._spec.inputs)
        return {
            f"{INPUT}.inputQueueLength": queues.input_elements,
            f"{INPUT}.inputQueueSize": queues.input_bytes,
            f"{INPUT}.inPoolUsage": queues.input_elements / room if room else 0.0,
            f"{OUTPUT}.outputQueueLength": queues.output_elements,
            f"{OUTPUT}.outputQueueSize": queues.output_bytes,
        }


def _source(metrics: TaskMetrics) -> Numbers:
    """What only a source has; lags in milliseconds, as Flink tells them."""
    known = {
        "pendingRecords": metrics.pending_rows,
        "newestEventTime": metrics.newest,
        "currentFetchEventTimeLag": _ms(metrics.fetch_lag),
        "currentEmitEventTimeLag": _ms(metrics.emit_lag),
        "watermarkAlignmentDrift": _ms(metrics.ahead),
    }
    return {name: value for name, value in known.items() if value is not None}


def _ms(micros: int | None) -> int | None:
    return None if micros is None else micros // 1000


def _watermarks(operators: list[OperatorMetrics]) -> Numbers:
    head, last = operators[0].watermark_in, operators[-1].watermark_out
    times = {"currentInputWatermark": head, "currentOutputWatermark": last}
    return {name: time for name, time in times.items() if time != MIN_TIME}


def latencies_of(metrics: TaskMetrics) -> dict[str, Numbers]:
    """How long the markers of each source vertex took to get here: histograms in ms."""
    return {
        source: histogram([latency // 1000 for latency in known.copy()])
        for source, known in list(metrics.latencies.items())
    }
