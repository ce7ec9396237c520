"""What can be done to the processes of a cluster, without the rights of root.

    kill     SIGKILL
    stop     SIGSTOP, for a while
    fill     RLIMIT_FSIZE of 0: every write to a file fails, as on a full disk; sockets are spared

Order    whoever calls waits: pauses are real.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import psutil

from engine.rest.client import ClientError, EngineClient
from engine.testing.chaos.schedule import Act, Deed
from engine.testing.cluster import LocalCluster

FREEZE_S = 2.5
"""More than the heartbeat's timeout of the clusters that chaos is done to."""


class Victims:
    """The processes of one cluster, as deeds find them."""

    def __init__(self, cluster: LocalCluster, client: EngineClient) -> None:
        self._cluster = cluster
        self._client = client
        self._acts: Mapping[Act, Callable[[Deed], str]] = {
            Act.KILL_WORKER: lambda deed: _kill(_pick(self._workers(), deed)),
            Act.KILL_TASK_MANAGER: lambda deed: _kill(_pick(cluster.task_managers(), deed)),
            Act.KILL_JOB_MANAGER: lambda _: self._kill_job_manager(),
            Act.FREEZE: self._freeze,
            Act.DOZE: lambda deed: _stop([_pick(self._workers(), deed)], deed.lasts_s),
            Act.DOZE_JOB_MANAGER: lambda deed: _stop([cluster.job_manager()], deed.lasts_s),
            Act.FILL_DISK: self._fill,
        }

    def hurt(self, deed: Deed) -> str:
        """Do it; say to whom."""
        return self._acts[deed.act](deed)

    def _workers(self) -> Sequence[psutil.Process]:
        """Workers that have a job, where that can be known; else spares too."""
        all_of_them = self._cluster.workers()
        try:
            busy = {pid for one in self._client.task_managers() for pid in one.worker_pids}
        except ClientError:
            busy = set()
        return [process for process in all_of_them if process.pid in busy] or all_of_them

    def _kill_job_manager(self) -> str:
        pid = self._cluster.kill_job_manager()
        self._cluster.restart_job_manager()
        return f"job manager {pid}"

    def _freeze(self, deed: Deed) -> str:
        manager = _pick(self._cluster.task_managers(), deed)
        if manager is None:
            return "nobody"
        workers: Sequence[psutil.Process] = ()
        with suppress(psutil.Error):
            workers = manager.children()
        return _stop([manager, *workers], FREEZE_S)

    def _fill(self, deed: Deed) -> str:
        everybody = [*self._workers(), *self._cluster.task_managers(), self._cluster.job_manager()]
        victim = _pick(everybody, deed)
        assert victim is not None
        _limit(victim, 0)
        _wait(deed.lasts_s)
        with suppress(psutil.Error):
            for process in [victim, *victim.children(recursive=True)]:  # they have inherited it
                _limit(process, None)
        return _name(victim)


def _pick(processes: Sequence[psutil.Process | None], deed: Deed) -> psutil.Process | None:
    return processes[int(deed.victim * len(processes))] if processes else None


def _kill(process: psutil.Process | None) -> str:
    if process is None:
        return "nobody"
    with suppress(psutil.Error):
        process.kill()
    return _name(process)


def _stop(processes: Sequence[psutil.Process | None], seconds: float) -> str:
    found = [process for process in processes if process is not None]
    for process in found:
        with suppress(psutil.Error):
            process.send_signal(signal.SIGSTOP)
    _wait(seconds)
    for process in found:
        with suppress(psutil.Error):
            process.send_signal(signal.SIGCONT)
    return ", ".join(map(_name, found)) or "nobody"


def _limit(process: psutil.Process, size_bytes: int | None) -> None:
    """Let a process write no file beyond a size; None: as far as it may."""
    with suppress(psutil.Error):
        _, hard = process.rlimit(psutil.RLIMIT_FSIZE)
        process.rlimit(psutil.RLIMIT_FSIZE, (hard if size_bytes is None else size_bytes, hard))


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


def _name(process: psutil.Process) -> str:
    return f"process {process.pid}"
