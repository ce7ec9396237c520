"""Looks into snapshots for clients, each in a process with limits: see inspection.py.

    read                     ─▶ answered when it is done
    verification, comparison ─▶ trigger id, polled; progress, then result or failure

Guarantee  the job manager neither waits for a look nor pays for it with its memory: so many at
           once, so long and so large each. One that needs more is ended, and the answer says so.
Order      one event loop. What was found is remembered for a while, in memory only: to look again
           changes nothing, so a trigger id need not outlive the job manager.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import psutil

from engine.checkpoint.inspection.questions import MAX_ANSWER_BYTES, StateQuestion, StateRows
from engine.checkpoint.inspection.reading import Progress, unheard
from engine.cluster.answers.places import Places
from engine.cluster.background import Background
from engine.cluster.programs.steps import outgrown
from engine.errors import HeadwaterError, InternalError, error_from_json
from engine.rest.errors import TooCostly, Unavailable, operation_not_found
from engine.rest.model.snapshots import InspectionStatus


@dataclass(frozen=True, slots=True)
class Limits:
    """What looks into snapshots may take."""

    read_s: float = 30.0
    """People wait for an answer."""
    long_s: float = 3_600.0
    """Reads a TB at the speed of a good disk."""
    memory_bytes: int = 2 << 30
    """Of one look: a comparison joins some million rows at a time."""
    at_once: int = 2
    """Reads; of long ones there is one at a time, which holds up no read."""
    waiting: int = 16
    """More are refused."""
    remembered: int = 64
    """Long ones whose result can be asked for."""


@dataclass(slots=True)
class _Long:
    """A verification or comparison."""

    what: str
    status: InspectionStatus


class Inspections:
    """Every look that is under way, and the last long ones that are over."""

    def __init__(self, places: Places, limits: Limits = Limits()) -> None:
        self._places = places
        self._limits = limits
        self._reading = asyncio.Semaphore(limits.at_once)
        self._long_one = asyncio.Semaphore(1)
        self._waiting = 0
        self._long: dict[str, _Long] = {}
        self._work = Background()

    async def read(self, path: str, question: StateQuestion) -> StateRows:
        """Rows of a state. Raises RestoreError, StorageError, TooCostly, Unavailable."""
        request = self._request("read", [path], question=asdict(question))
        self._check_room(self._reading)
        found = await self._look(request, self._limits.read_s, self._reading, unheard)
        return StateRows.from_json(found)

    def start(self, what: str, paths: Sequence[str], trigger_id: str | None, **more: object) -> str:
        """Begin a verification or a comparison; the same trigger id again is the same one."""
        request = self._request(what, paths, **more)
        trigger_id = trigger_id or secrets.token_hex(16)
        if trigger_id not in self._long:
            self._check_room(self._long_one)
            self._long[trigger_id] = _Long(what, InspectionStatus(finished=False))
            self._work.start(self._run(trigger_id, request))
            self._forget()
        return trigger_id

    def status(self, what: str, trigger_id: str) -> InspectionStatus:
        """Where a long one stands. Raises NotFound."""
        known = self._long.get(trigger_id)
        if known is None or known.what != what:
            raise operation_not_found(what, trigger_id)
        return known.status

    def _request(self, what: str, paths: Sequence[str], **more: object) -> Mapping[str, object]:
        places = [self._places.place(path) for path in paths]
        return {"what": what, "places": [[place.url, place.root] for place in places], **more}

    def _forget(self) -> None:
        over = [id_ for id_, known in self._long.items() if known.status.finished]
        for id_ in over[: max(0, len(self._long) - self._limits.remembered)]:
            del self._long[id_]

    async def _run(self, trigger_id: str, request: Mapping[str, object]) -> None:
        known = self._long[trigger_id]

        def heard(done: int, total: int) -> None:
            known.status = replace(known.status, done=done, total=total)

        try:
            result = await self._look(request, self._limits.long_s, self._long_one, heard)
            known.status = replace(known.status, finished=True, result=result)
        except HeadwaterError as error:
            known.status = replace(known.status, finished=True, failure=str(error))

    def _check_room(self, turn: asyncio.Semaphore) -> None:
        if turn.locked() and self._waiting >= self._limits.waiting:
            msg = f"{self._waiting} looks into snapshots wait already; ask again in a while"
            raise Unavailable(msg)

    async def _look(
        self,
        request: Mapping[str, object],
        seconds: float,
        turn: asyncio.Semaphore,
        heard: Progress,
    ) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(seconds):
                self._waiting += 1
                try:
                    await turn.acquire()
                finally:
                    self._waiting -= 1
                try:
                    return await _in_a_process(request, self._limits.memory_bytes, heard)
                finally:
                    turn.release()
        except TimeoutError as error:
            msg = f"look into the snapshot did not end in {seconds:g} s; ask for less of it"
            raise TooCostly(msg) from error


async def _in_a_process(
    request: Mapping[str, object], memory_bytes: int, heard: Progress
) -> Mapping[str, Any]:
    threads = str(max(1, (os.cpu_count() or 2) // 2))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "engine.cluster.answers.inspection"),
        stdin=PIPE,
        stdout=PIPE,
        limit=4 * MAX_ANSWER_BYTES,
        env={**os.environ, "POLARS_MAX_THREADS": threads},
    )
    watch = asyncio.create_task(_too_large(process, memory_bytes))
    try:
        answer = await _exchange(process, request, heard)
    finally:
        watch.cancel()
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()  # to the end of its output, so that no pipe is left open
    if answer is not None:
        return answer
    if watch.done() and not watch.cancelled():
        msg = (
            f"look into the snapshot needs more than {memory_bytes >> 20} MiB of memory; ask for "
            "less of it"
        )
        raise TooCostly(msg)
    msg = f"look into the snapshot ended with code {process.returncode}; see the job manager's log"
    raise InternalError(msg)


async def _exchange(
    process: Process, request: Mapping[str, object], heard: Progress
) -> Mapping[str, Any] | None:
    """Ask, and listen to the end; None when there was no answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    async for line in process.stdout:
        body: Mapping[str, Any] = json.loads(line)
        if "error" in body:
            raise error_from_json(body["error"], HeadwaterError, otherwise=InternalError)
        if "result" in body:
            result: Mapping[str, Any] = body["result"]
            return result
        heard(body["done"], body["total"])
    return None


async def _too_large(process: Process, memory_bytes: int) -> None:
    """End a process as soon as it holds more than it may; pages of files do not count."""

    def held() -> int:
        memory = watched.memory_info()
        return int(memory.rss - getattr(memory, "shared", 0))

    with suppress(psutil.Error):
        watched = psutil.Process(process.pid)
        await outgrown(held, memory_bytes)
        process.kill()
        return
    await asyncio.Event().wait()  # it is gone: nothing was too large
