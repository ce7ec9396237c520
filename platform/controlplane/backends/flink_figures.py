"""Figures of a vertex on Apache Flink: what to ask for, and what its answer means here.

    names that the vertex has ─ askable ─▶ Flink's name ─▶ ours
    answer                    ─ ours ────▶ figures by our names

Flink answers nothing at all when it does not know one of the names that it is asked for, and of
output watermarks it knows only those of single operators: the least of a chain is its subtask's.

Source   Flink 2.3: a vertex without `nonsense`, asked for `numRecordsIn,nonsense`, answers `[]`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

OF_OPERATORS = frozenset({"currentOutputWatermark"})
"""Known of each operator of a chain, not of the chain."""

Figures = Mapping[str, Mapping[str, float]]


def askable(names: Collection[str], wanted: Iterable[str]) -> dict[str, str]:
    """What a vertex with these metrics can be asked of what is wanted: Flink's name to ours.

    >>> askable(["busy", "sums.currentOutputWatermark"], ["busy", "idle", "currentOutputWatermark"])
    {'busy': 'busy', 'sums.currentOutputWatermark': 'currentOutputWatermark'}
    """
    found = dict[str, str]()
    for one in wanted:
        if one in names:
            found[one] = one
        elif one in OF_OPERATORS:
            found |= {name: one for name in names if name.endswith(f".{one}")}
    return found


def ours(figures: Figures, called: Mapping[str, str]) -> Figures:
    """An answer under our names; of several under one name, the least and the largest of all.

    >>> answer = {"a.mark": {"min": 5.0, "max": 6.0}, "b.mark": {"min": 4.0, "max": 5.0}}
    >>> ours(answer, {"a.mark": "mark", "b.mark": "mark"})
    {'mark': {'min': 4.0, 'max': 6.0}}
    """
    together = dict[str, list[Mapping[str, float]]]()
    for name, one in figures.items():
        together.setdefault(called.get(name, name), []).append(one)
    return {name: _joined(several) for name, several in together.items()}


def _joined(several: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    if len(several) == 1:
        return several[0]
    return {"min": min(one["min"] for one in several), "max": max(one["max"] for one in several)}
