"""The failures of one job, and what each of them led to; remembered over job managers.

    failure ──▶ add ──▶ store, then Restart | GiveUp          its echoes ──▶ add_concurrent

Order    a failure is in the store before anything follows from it: a job manager that is killed
         in the midst of a restart leaves the cause of that restart to the next one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from engine.cluster.jobs import failures
from engine.cluster.jobs.restart import GiveUp, Restart, RestartPolicy
from engine.cluster.store.store import Store
from engine.rest.model.jobs import Failure

SHOWN = 16
"""More would only repeat them."""


class FailureLog:
    """Remembers, and lets the policy decide."""

    def __init__(self, job_id: str, policy: RestartPolicy, store: Store) -> None:
        self.newest_first: deque[Failure] = deque(maxlen=SHOWN)
        self.policy = policy
        self._job_id = job_id
        self._store = store

    @property
    def newest(self) -> Failure | None:
        """The latest cause of a restart, or of the end."""
        return self.newest_first[0] if self.newest_first else None

    def recall(self) -> None:
        """Be where the job manager before was: it may have been one failure before the last."""
        for body in reversed(self._store.failures(self._job_id)):
            assert isinstance(body, dict)
            failure = failures.from_json(body)
            self.policy.on_failure(failures.cause_of(failure), failure.at_ms)
            self.newest_first.appendleft(failure)

    def add(self, failure: Failure) -> Restart | GiveUp:
        """Remember the cause of an attempt's end, and decide what follows."""
        decision = self.policy.on_failure(failures.cause_of(failure), failure.at_ms)
        if isinstance(decision, GiveUp):
            failure = replace(failure, verdict=decision.reason)
        self.newest_first.appendleft(failure)
        self._store.add_failure(self._job_id, failure.at_ms, failures.to_json(failure))
        return decision

    def add_concurrent(self, failure: Failure) -> None:
        """A failure of a dying attempt: news only when a subtask had something to say."""
        root = self.newest
        if failure.task is not None and root is not None:
            root = replace(root, concurrent=(*root.concurrent, failure))
            self.newest_first[0] = root
            self._store.amend_failure(self._job_id, failures.to_json(root))
