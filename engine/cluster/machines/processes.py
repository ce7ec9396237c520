"""Processes that must not outlive their purpose: found again by id and birth, killed, awaited.

A process id alone may belong to someone else by now; together with the time of birth it does not.
On Linux that is counted from the start of the machine: the time of day may have been set since.

Guarantee  when `end` returns, none of the processes runs: a new attempt of a job never meets a
           worker of an old one.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from engine.cluster.store.rows import ProcessRow

CHECK_S = 0.02
"""Between looks at a dying process: the kernel needs a few milliseconds to take it apart."""


def identify(pid: int, what: str) -> ProcessRow | None:
    """Describe a running process so that it can be found again; None when it is gone already."""
    born = _born(pid)
    return None if born is None else ProcessRow(pid, born, what)


def runs(row: ProcessRow) -> bool:
    """Whether this very process still runs."""
    try:
        zombie = psutil.Process(row.pid).status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
    return not zombie and _born(row.pid) == row.created


def _born(pid: int) -> float | None:
    """When a process was born, on a clock that nobody sets; None when it is gone."""
    try:
        if sys.platform == "linux":
            # Field 22; the second one is the command in brackets, and may hold anything.
            return float(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
        return psutil.Process(pid).create_time()
    except (OSError, psutil.Error):
        return None


async def end(rows: Iterable[ProcessRow]) -> None:
    """Kill processes and wait until they are gone."""
    left = [row for row in rows if runs(row)]
    for row in left:
        with suppress(psutil.Error):
            psutil.Process(row.pid).kill()
    while left := [row for row in left if runs(row)]:
        await asyncio.sleep(CHECK_S)
