"""Processes that must not outlive their purpose: found again by id and birth, killed, awaited.

A process id alone may belong to someone else by now; together with the time of birth it does not.

Guarantee  when `end` returns, none of the processes runs: a new attempt of a job never meets a
           worker of an old one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

import psutil

from engine.cluster.store import ProcessRow

CHECK_S = 0.02
"""Between looks at a dying process: the kernel needs a few milliseconds to take it apart."""


def identify(pid: int, what: str) -> ProcessRow | None:
    """Describe a running process so that it can be found again; None when it is gone already."""
    try:
        return ProcessRow(pid, psutil.Process(pid).create_time(), what)
    except psutil.Error:
        return None


def runs(row: ProcessRow) -> bool:
    """Whether this very process still runs."""
    try:
        process = psutil.Process(row.pid)
        return process.create_time() == row.created and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


async def end(rows: Iterable[ProcessRow]) -> None:
    """Kill processes and wait until they are gone."""
    left = [row for row in rows if runs(row)]
    for row in left:
        with suppress(psutil.Error):
            psutil.Process(row.pid).kill()
    while left := [row for row in left if runs(row)]:
        await asyncio.sleep(CHECK_S)
