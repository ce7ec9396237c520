r"""Metrics as Prometheus reads them: text, version 0.0.4.

    # HELP headwater_job_restarts_total Restarts after failures.
    # TYPE headwater_job_restarts_total counter
    headwater_job_restarts_total{job="flights",job_id="f9…"} 2

Shapes   one block per metric, with its HELP and TYPE once, in the order of names; labels in theirs.
         In label values \, " and newlines are escaped, in HELP \ and newlines.
Source   Prometheus, Exposition formats, text-based format.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import isfinite, isnan

from engine.rest.model.metrics import Metric, Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "headwater"


def text(samples: Iterable[Sample]) -> str:
    """Write samples."""
    by_metric: defaultdict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_metric[id(sample.metric)].append(sample)
    lines, labels = list[str](), _Labels()
    blocks = {name_of(block[0].metric): block for block in by_metric.values()}
    for name, block in sorted(blocks.items()):
        metric = block[0].metric
        lines.append(f"# HELP {name} {_escaped(metric.help)}")
        lines.append(f"# TYPE {name} {metric.kind}")
        scale = metric.scale
        lines += [f"{name}{labels.of(sample)} {_number(sample.value * scale)}" for sample in block]
    return "\n".join(lines) + "\n" if lines else ""


def name_of(metric: Metric) -> str:
    """What Prometheus calls a metric."""
    return f"{PREFIX}_{metric.scope}_{metric.exposed}"


class _Labels:
    """Labels as text; those of one thing are written once, for all of its samples."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Mapping[str, str], str]] = {}

    def of(self, sample: Sample) -> str:
        if sample.extra:
            return _written({**sample.labels, **sample.extra})
        known = self._known.get(id(sample.labels))
        if known is None:
            # Kept, so that no other labels get the same id meanwhile.
            known = self._known[id(sample.labels)] = sample.labels, _written(sample.labels)
        return known[1]


def _written(labels: Mapping[str, str]) -> str:
    shown = ",".join(f'{name}="{_label(value)}"' for name, value in sorted(labels.items()))
    return f"{{{shown}}}" if shown else ""


def _number(value: float) -> str:
    """As Go's ParseFloat reads it, without noise of the scale.

    >>> [_number(value) for value in (3.0, 0.1 + 0.2, 1.7e18, float("nan"), float("inf"))]
    ['3', '0.3', '1.7e+18', 'NaN', '+Inf']
    """
    if isfinite(value):
        return f"{value:.15g}"
    return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _label(value: str) -> str:
    return _escaped(value).replace('"', '\\"')
