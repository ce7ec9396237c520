"""Stack traces, folded: frames of engines and libraries together, the job's own ones in sight.

    Traceback (most recent call last):            in sight
      File "…/engine/runtime/task.py", line 90    ┐ folded: 2 frames
      File "…/site-packages/polars/frame.py"      ┘
      File "flights.py", line 7, in parse         in sight
    KeyError: 'delay'                             in sight

Order    nothing is left out: the stretches one after the other are the trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

_PYTHON = re.compile(r'^(?P<in>\s*)File "(?P<file>[^"]*)", line \d+')
_JAVA = re.compile(r"^\s*at (?P<where>[\w.$/@-]+)\.[\w$<>]+\(")
_OTHERS_FILES = re.compile(
    r"[/\\](?:site-packages|dist-packages|lib[/\\]python3[^/\\]*|engine)[/\\]|^<frozen "
)
_OTHERS_CLASSES = re.compile(
    r"^(?:[\w.]+/)?(?:java|jdk|sun|scala|akka|org\.apache\.(?:flink|pekko))\."
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some lines of a trace."""

    text: str
    frames: int
    """How many frames are folded in it; 0: it is in sight."""


def folded(trace: str) -> tuple[Stretch, ...]:
    """The trace in stretches."""
    stretches = []
    for others, pieces in groupby(_pieces(trace), key=lambda piece: piece.others):
        several = list(pieces)
        text = "\n".join(piece.text for piece in several)
        stretches.append(Stretch(text, len(several) if others else 0))
    return tuple(stretches)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A frame with the source lines below it, or a line that is no frame."""

    text: str
    others: bool


def _pieces(trace: str) -> Iterator[_Piece]:
    lines: list[str] = []
    others, indent = False, None
    for line in trace.strip("\n").split("\n"):
        if indent is not None and line.startswith(indent + " ") and not _PYTHON.match(line):
            lines.append(line)  # the source of the frame above
            continue
        if lines:
            yield _Piece("\n".join(lines), others)
        python, java = _PYTHON.match(line), _JAVA.match(line)
        indent = python["in"] if python else None
        others = bool(
            (python and _OTHERS_FILES.search(python["file"]))
            or (java and _OTHERS_CLASSES.match(java["where"]))
        )
        lines = [line]
    yield _Piece("\n".join(lines), others)
