"""What somebody chose to see of a job's metrics, as the address of the page names it.

?m=job|kept.in|  &m=<vertex>|busyTimeMsPerSecond|2
     └ where     └ what                          └ subtask; empty: over all
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

JOB = "job"
CHOSEN = 12
MINUTES = {"5": "5 min", "60": "1 h", "360": "6 h", "1440": "24 h", "10080": "7 days"}
KEPT_MARK = "kept."

KEPT_OF_JOB: Mapping[str, tuple[str, str]] = {
    "in": ("Rows read", "rate"),
    "out": ("Rows written", "rate"),
    "delay_ms": ("Watermark delay", "dur"),
    "pending": ("Rows that wait to be read", "count"),
    "busy": ("Busy, busiest subtask", "percent"),
    "bp": ("Backpressured, worst subtask", "percent"),
    "speed": ("Event time against real time", "times"),
}
KEPT_OF_VERTEX: Mapping[str, tuple[str, str]] = {
    "in": ("Rows in, all subtasks", "rate"),
    "out": ("Rows out, all subtasks", "rate"),
    "busy": ("Busy, busiest subtask", "percent"),
    "bp": ("Backpressured, worst subtask", "percent"),
    "idle": ("Idle, least idle subtask", "percent"),
}
DEFAULT = ("job|kept.in|", "job|kept.out|", "job|kept.delay_ms|", "job|kept.busy|")


@dataclass(frozen=True, slots=True)
class Chosen:
    """One figure that is to be shown."""

    where: str
    """`job`, or the id of a vertex."""
    name: str
    subtask: str
    """Its index; empty: over all subtasks."""

    @property
    def text(self) -> str:
        """As the address has it."""
        return f"{self.where}|{self.name}|{self.subtask}"

    @property
    def vertex_id(self) -> str | None:
        """None: the job itself."""
        return None if self.where == JOB else self.where

    @property
    def kept(self) -> str:
        """Field of the series store; empty: the engine is asked."""
        return self.name.removeprefix(KEPT_MARK) if self.name.startswith(KEPT_MARK) else ""

    @property
    def asked_as(self) -> str:
        """What the engine calls it."""
        return f"{self.subtask}.{self.name}" if self.subtask else self.name


def chosen_of(texts: Sequence[str]) -> list[Chosen]:
    """What the address names, each once; what cannot be read is left out."""
    parts = [text.replace("\0", "")[:300].split("|") for text in texts]
    found = [Chosen(*part) for part in parts if len(part) == 3 and part[0] and part[1]]
    fit = [one for one in found if not one.subtask or one.subtask.isdecimal()]
    return list(dict.fromkeys(fit))[:CHOSEN]
