"""A request that the client knows: what to send, and how to read the answer.

    job_calls.job(id) ─▶ Call[JobDetail] ─▶ EngineClient or AsyncEngineClient sends it ─▶ JobDetail

A call is a value without I/O, so the blocking and the awaiting client share all of this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

T = TypeVar("T")

BUILD_S = 50.0
"""The engine runs the job file to build its graph, in a new process, within a limit of its own, of
which it must have time to tell."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and the reader of its answer."""

    method: str
    path: str
    read: Callable[[Any], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, object] | None = None
    file: tuple[str, bytes] | None = None
    """Name and content of an upload."""
    needs_s: float = 0.0
    """How long a good answer may take; the client waits so long even if it is less patient."""


def of_job(job_id: str, rest: str = "") -> str:
    """Path of what belongs to a job."""
    return f"/jobs/{quote(job_id, safe='')}" + (f"/{rest}" if rest else "")


def of_vertex(job_id: str, vertex_id: str, rest: str = "") -> str:
    """Path of what belongs to a vertex."""
    return of_job(job_id, f"vertices/{quote(vertex_id, safe='')}" + (f"/{rest}" if rest else ""))


def nothing(_body: object) -> None:
    """Read an answer that says no more than that it was done."""
    return
