"""One history: a cluster of its own, disturbed by one schedule, and judged by what is left of it.

    folder/engine      home of the cluster; its logs
    folder/output      what the job wrote
    folder/story.txt   what was done, when, and to whom

Guarantee  when it raises nothing, the output is that of the undisturbed run, and nothing of the
           cluster is left but what people keep: outputs, snapshots, logs.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from random import Random

import polars as pl

from engine.clock import monotonic
from engine.errors import HeadwaterError
from engine.rest.client import EngineClient
from engine.testing.chaos import work
from engine.testing.chaos.left_over import TEMPORARY, left_over
from engine.testing.chaos.operator import Operator
from engine.testing.chaos.schedule import Act, Deed, Schedule
from engine.testing.chaos.victims import Victims
from engine.testing.cluster import LocalCluster

OPTIONS = ("-D", "heartbeat.interval=200ms", "-D", "heartbeat.timeout=1500ms")
SLOTS = 3
"""Of each of two task managers: what is left of them is enough for any parallelism."""

STORY = "story.txt"
LOOK_S = 0.05
PATIENCE_S = 240.0
"""Far more than a job of a few seconds needs with all its restarts, also on a busy machine."""


class BrokenLaw(Exception):
    """A history that ended otherwise than the undisturbed one."""


class History:
    """Runs one schedule."""

    def __init__(self, schedule: Schedule, recording: Path, folder: Path) -> None:
        self.schedule = schedule
        self._recording = recording
        self.folder = folder
        self._output = folder / "output"
        self._began = monotonic()
        self.jobs: Collection[str] = ()

    def run(self, expected: dict[str, pl.DataFrame] | None) -> dict[str, pl.DataFrame]:
        """Live it, and return the output. Raises BrokenLaw when it is not the expected one."""
        home = self.folder / "engine"
        temporary = home / TEMPORARY
        temporary.mkdir(parents=True)
        try:
            with LocalCluster(
                home, slots=SLOTS, options=OPTIONS, environment={"TMPDIR": str(temporary)}
            ) as cluster:
                self._live(cluster)
        except (HeadwaterError, TimeoutError, RuntimeError) as error:
            raise BrokenLaw(str(error)) from error
        found = work.written(self._output)
        if expected is not None and (difference := work.difference(found, expected)):
            raise BrokenLaw(difference)
        if left := left_over(home, self._output, self.jobs):
            raise BrokenLaw("left behind: " + "; ".join(left))
        return found

    @property
    def story(self) -> str:
        """What was done so far."""
        return (self.folder / STORY).read_text()

    def tidy(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder)

    def _live(self, cluster: LocalCluster) -> None:
        with EngineClient(cluster.url) as client:
            chance = Random(self.schedule.seed)  # noqa: S311  ids of requests
            operator, victims = Operator(client, chance), Victims(cluster)
            speed = work.SPEED if self.schedule.deeds else 0
            operator.start(
                work.JOB_FILE,
                [str(self._recording), str(self._output), str(speed)],
                self.schedule.parallelism,
                {"state.backend": self.schedule.backend},
            )
            if not self.schedule.early:
                self._pass(operator, PATIENCE_S, operator.has_checkpoint)
                self._note("the job has a checkpoint")
            for deed in self.schedule.deeds:
                if self._pass(operator, deed.after_s):
                    self._note("the job is over already")
                    break
                self._note(f"{deed.act}: {self._do(deed, operator, victims)}")
            if not self._pass(operator, PATIENCE_S):
                msg = f"job {operator.job} has not ended in {PATIENCE_S:g} s"
                raise TimeoutError(msg)
            self._note("the job is over")
            self.jobs = [job.id for job in client.jobs()]

    def _do(self, deed: Deed, operator: Operator, victims: Victims) -> str:
        match deed.act:
            case Act.SAVEPOINT:
                return operator.savepoint()
            case Act.RESCALE:
                return operator.rescale(1 + int(deed.victim * SLOTS))
            case Act.MOVE:
                return operator.move(1 + int(deed.victim * SLOTS))
        return victims.hurt(deed)

    def _pass(
        self, operator: Operator, seconds: float, enough: Callable[[], bool] = lambda: False
    ) -> bool:
        """Let time pass while the person works, until it is enough; whether the job is over."""
        pause, until = threading.Event(), monotonic() + seconds
        while monotonic() < until and not enough():
            if operator.advance():
                return True
            pause.wait(min(LOOK_S, max(0.0, until - monotonic())))
        return False

    def _note(self, what: str) -> None:
        with (self.folder / STORY).open("a") as story:
            story.write(f"{monotonic() - self._began:7.2f} s  {what}\n")
