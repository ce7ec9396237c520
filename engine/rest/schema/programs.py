"""Bodies that start a program, or ask about one."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class ProgramBody(TypedDict):
    """How a program is to run."""

    programArgsList: NotRequired[list[str] | None]
    parallelism: NotRequired[int | None]
    flinkConfiguration: NotRequired[dict[str, str | float | bool] | None]
    entryClass: NotRequired[str | None]


class RunBody(ProgramBody):
    """How a job starts."""

    jobId: NotRequired[str | None]
    savepointPath: NotRequired[str | None]
    allowNonRestoredState: NotRequired[bool | None]
    allowNonRestoredOperators: NotRequired[list[str] | None]
    acceptMissingInput: NotRequired[list[str] | None]
    claimMode: NotRequired[str | None]


class PreflightBody(ProgramBody):
    """A program and a snapshot."""

    artifact: str
    savepointPath: str
    allowNonRestoredState: NotRequired[bool | None]
    allowNonRestoredOperators: NotRequired[list[str] | None]
    acceptMissingInput: NotRequired[list[str] | None]
