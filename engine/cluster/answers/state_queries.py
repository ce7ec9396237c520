"""Questions about live state: which subtask owns the key, and what it says.

    job, operator, state, key ──plan──▶ key group ──▶ subtask ──LookUp──▶ worker ──Found──▶ rows

Errors   NotFound for what the job does not have, BadRequest for a key that cannot be, Conflict when
         the job has ended, Unavailable while it is not running or does not answer: ask again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count

from engine.checkpoint.inspection.questions import StateRows
from engine.cluster.answers.state_address import Address, address
from engine.cluster.jobs.attempt import Attempt
from engine.cluster.jobs.master import JobMaster
from engine.rest.errors import BadRequest, Conflict, Unavailable
from engine.rest.model.states import StateQuery, StateValue
from engine.runtime.control import Found, LookUp

PATIENCE_S = 5.0
"""A subtask answers between two batches; one that takes so long is stuck, or its batches are."""


class StateQueries:
    """Asks workers of running jobs."""

    def __init__(self, find: Callable[[str], JobMaster], patience_s: float = PATIENCE_S) -> None:
        """`find` gives a job by its id."""
        self._find = find
        self._patience_s = patience_s
        self._numbers = count(1)

    async def get(self, job_id: str, query: StateQuery) -> StateValue:
        """What a key has now."""
        master = self._find(job_id)
        at = address(master.plan, query)
        found = await self._ask(_running(master), job_id, query, at)
        if found.failure is not None:
            msg = f"state {query.state!r} of operator {query.operator!r}: {found.failure}"
            raise BadRequest(msg)
        assert isinstance(found.rows, dict)
        return StateValue(at.state.kind, StateRows.from_json(found.rows))

    async def _ask(self, attempt: Attempt, job_id: str, query: StateQuery, at: Address) -> Found:
        peer = attempt.workers[at.subtask].peer
        if peer is None:
            raise _unavailable(job_id, "restarts")
        number = next(self._numbers)
        question: asyncio.Future[Found | None] = asyncio.get_running_loop().create_future()
        attempt.questions[number] = question
        peer.send(
            LookUp(number, at.vertex.id, at.subtask, query.operator, query.state, at.group, at.key)
        )
        try:
            async with asyncio.timeout(self._patience_s):
                found = await question
        except TimeoutError as error:
            what = f"does not answer within {self._patience_s:g} s"
            raise _unavailable(job_id, what) from error
        finally:
            attempt.questions.pop(number, None)
        if found is None:
            raise _unavailable(job_id, "restarts")
        return found


def _running(master: JobMaster) -> Attempt:
    status, attempt = master.life.status, master.attempt
    if status.terminal:
        msg = f"job {master.row.job_id} is {status}: its state is gone; read a savepoint of it"
        raise Conflict(msg)
    if attempt is None or not attempt.running or attempt.ending or attempt.finishing:
        raise _unavailable(master.row.job_id, f"is {status}, not all of its tasks run")
    return attempt


def _unavailable(job_id: str, what: str) -> Unavailable:
    return Unavailable(f"state of job {job_id} cannot be asked for now: the job {what}; ask again")
