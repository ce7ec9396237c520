"""What can be done to the processes of a cluster, without the rights of root.

    kill     SIGKILL
    stop     SIGSTOP, for a while or until they are lost, then SIGCONT
    fill     RLIMIT_FSIZE of 0: every write to a file fails, as on a full disk; sockets are spared

Order    whoever calls waits: pauses are real.
Needs    Linux, for the limits of another process.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress

import psutil

from engine.testing.chaos.schedule import Act, Deed
from engine.testing.cluster import LocalCluster

FREEZE_S = 10.0
"""Far more than the heartbeat's timeout of the clusters that chaos is done to."""


class Victims:
    """The processes of one cluster, as deeds find them."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def hurt(self, deed: Deed) -> str:
        """Do it; say to whom."""
        match deed.act:
            case Act.KILL_JOB_MANAGER:
                pid = self._cluster.kill_job_manager()
                self._cluster.restart_job_manager()
                return f"process {pid}"
            case Act.KILL_WORKER | Act.DOZE:
                among = self._cluster.workers()
            case Act.KILL_TASK_MANAGER | Act.FREEZE:
                among = self._cluster.task_managers()
            case Act.DOZE_JOB_MANAGER:
                among = [self._cluster.job_manager()]
            case _:
                managers = [*self._cluster.task_managers(), self._cluster.job_manager()]
                among = [*self._cluster.workers(), *managers]
        if not among:
            return "nobody is there"
        victim = among[int(deed.victim * len(among))]
        with suppress(psutil.NoSuchProcess):  # it has died in this moment
            _DEEDS[deed.act](victim, deed.lasts_s)
        return f"process {victim.pid}"


def _kill(process: psutil.Process, _seconds: float) -> None:
    process.kill()


def _doze(process: psutil.Process, seconds: float) -> None:
    process.send_signal(signal.SIGSTOP)
    _wait(seconds)
    process.send_signal(signal.SIGCONT)


def _freeze(manager: psutil.Process, _seconds: float) -> None:
    """Stop it and its workers until they have been killed; who was forgotten wakes up."""
    frozen = [manager, *manager.children()]
    for process in frozen:
        _signal(process, signal.SIGSTOP)
    _, forgotten = psutil.wait_procs(frozen, FREEZE_S)
    for process in forgotten:
        _signal(process, signal.SIGCONT)


def _fill(process: psutil.Process, seconds: float) -> None:
    _, hard = process.rlimit(psutil.RLIMIT_FSIZE)
    process.rlimit(psutil.RLIMIT_FSIZE, (0, hard))
    _wait(seconds)
    for limited in [process, *process.children(recursive=True)]:  # they have inherited it
        with suppress(psutil.Error):
            limited.rlimit(psutil.RLIMIT_FSIZE, (hard, hard))


_DEEDS: dict[Act, Callable[[psutil.Process, float], None]] = {
    Act.KILL_WORKER: _kill,
    Act.KILL_TASK_MANAGER: _kill,
    Act.FREEZE: _freeze,
    Act.DOZE: _doze,
    Act.DOZE_JOB_MANAGER: _doze,
    Act.FILL_DISK: _fill,
}


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)
