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
from collections.abc import Iterable

from engine.rest.model.metrics import Metric, Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "headwater"


def text(samples: Iterable[Sample]) -> str:
    """Write samples."""
    blocks: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        blocks[name_of(sample.metric)].append(sample)
    lines: list[str] = []
    for name, block in sorted(blocks.items()):
        metric = block[0].metric
        lines.append(f"# HELP {name} {_escaped(metric.help)}")
        lines.append(f"# TYPE {name} {metric.kind}")
        lines += sorted(_line(name, sample) for sample in block)
    return "\n".join(lines) + "\n" if lines else ""


def name_of(metric: Metric) -> str:
    """What Prometheus calls a metric."""
    return f"{PREFIX}_{metric.scope}_{metric.exposed}"


def _line(name: str, sample: Sample) -> str:
    labels = sorted({**sample.labels, **sample.extra}.items())
    shown = ",".join(f'{label}="{_label(value)}"' for label, value in labels)
    value = _number(sample.value * sample.metric.scale)
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def _number(value: float) -> str:
    """As Go's ParseFloat reads it, without noise of the scale.

    >>> [_number(value) for value in (3.0, 0.1 + 0.2, 1.7e18, float("nan"), float("inf"))]
    ['3', '0.3', '1.7e+18', 'NaN', '+Inf']
    """
    shown = f"{value:.15g}"
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(shown, shown)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _label(value: str) -> str:
    return _escaped(value).replace('"', '\\"')
