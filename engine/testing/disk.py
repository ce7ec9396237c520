"""The disk that an attempt writes to: at once, or, while the storage is slow, file by file.

    begin(write) --clear or full--> written, or failed
                 --slow--> held before a file --its time has come--> before the next --> written

Guarantee  a held write runs on a thread of its own, as in a worker, but never at the same time as
           anything else: it has the turn or waits for it, so one seed is one history.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import partial
from random import Random
from threading import Semaphore, Thread

from engine.elements import Micros
from engine.graph.jobgraph import TaskId
from engine.testing.place import Pace, Step
from engine.testing.weather import Sky, Weather

Writer = TaskId | None
"""Who writes: a subtask, or else the coordinator."""

LONGEST_HOLD_US = 300_000
"""With a few files, a write can take longer than a checkpoint may."""


class Disk:
    """Everything that is being written in one attempt."""

    def __init__(self, weather: Weather, random: Random) -> None:
        self._weather = weather
        self._random = random
        self._held: list[_Held] = []

    def begin(self, writer: Writer, write: Callable[[], None], now: Micros) -> None:
        """Write something; `write` tells by itself what became of it."""
        if self._weather.sky is Sky.SLOW:
            self._held.append(_Held(writer, HeldWrite(write), self._later(now)))
        else:
            write()

    def is_writing(self, writer: Writer) -> bool:
        """Whether a write of this one waits for its turn."""
        return any(held.writer == writer for held in self._held)

    def steps(self, now: Micros) -> list[Step]:
        """The writes whose time has come."""
        ready = [held for held in self._held if held.ready_at <= now]
        return [Step(Pace.STORAGE, partial(self._go_on, held, now)) for held in ready]

    def kill(self, writers: Container[Writer]) -> None:
        """Whoever writes is gone, and nothing more of it is written."""
        for held in [each for each in self._held if each.writer in writers]:
            held.write.kill()
            self._held.remove(held)

    def finish(self, now: Micros) -> None:
        """Let everything be written to its end."""
        while self._held:
            self._go_on(self._held[0], now)

    def _go_on(self, held: _Held, now: Micros) -> None:
        self._weather.wait = held.write.wait
        held.write.turn()
        self._weather.wait = None
        held.ready_at = self._later(now)
        if held.write.is_over:
            self._held.remove(held)

    def _later(self, now: Micros) -> Micros:
        return Micros(now + self._random.randint(0, LONGEST_HOLD_US))


@dataclass(slots=True)
class _Held:
    writer: Writer
    write: HeldWrite
    ready_at: Micros
    """When it may have its next turn."""


class HeldWrite:
    """A write that goes on from file to file by turns. Killed, or its thread waits for ever."""

    def __init__(self, write: Callable[[], None]) -> None:
        self.is_over = False
        self._write = write
        self._turn, self._returned = Semaphore(0), Semaphore(0)
        self._is_killed = False
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name="held write", daemon=True)
        self._thread.start()

    def turn(self) -> None:
        """Let it go on until it waits again, or is over. Raises what the write raised."""
        self._turn.release()
        self._returned.acquire()
        if self._error is not None:
            raise self._error

    def wait(self) -> None:
        """Wait for the next turn. Called on the thread of the write."""
        self._returned.release()
        self._take_turn()

    def kill(self) -> None:
        """Whoever writes is gone."""
        self._is_killed = True
        self.turn()
        self._thread.join()

    def _take_turn(self) -> None:
        self._turn.acquire()
        if self._is_killed:
            raise _Killed

    def _run(self) -> None:
        try:
            self._take_turn()
            self._write()
        except _Killed:
            pass
        except BaseException as error:  # noqa: BLE001  it is raised again where the turn came from
            self._error = error
        finally:
            self.is_over = True
            self._returned.release()


class _Killed(BaseException):
    """The process that wrote is gone."""
