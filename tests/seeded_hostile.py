"""A job of the seeded server with markup wherever a job, an engine or a person can put text."""

from __future__ import annotations

from hostile import MARKUP
from seeded_jobs import SINK, SOURCE, Op

ID = "4" * 32
OPS = (
    Op(MARKUP, SOURCE, 2, 0, 1e3, 10, chain=(MARKUP,)),
    Op(f"store {MARKUP}", SINK, 2, 1e3, 0, 5),
)
EDGES = ((OPS[0].name, OPS[1].name, "hash"),)
