"""The world of one history: what an attempt of the job finds, and what outlives it.

World > storage with its weather, records and logs of snapshots, output tables, time
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from engine.checkpoint.coordination.stats import CheckpointLog
from engine.elements import Micros
from engine.state.changes import LayerPolicy
from engine.testing.memory import MemoryStorage, OutputTables
from engine.testing.recorded import Records
from engine.testing.weather import Weather

BEGIN = Micros(0)


@dataclass(frozen=True, slots=True)
class Mishaps:
    """What happens to messages between the coordinator and the tasks: a part of them each."""

    lost: float = 0.0
    repeated: float = 0.0

    def copies(self, random: Random) -> int:
        """How often a message arrives."""
        luck = random.random()
        return 0 if luck < self.lost else 2 if luck < self.lost + self.repeated else 1


@dataclass(slots=True)
class World:
    """Whatever is not part of a running job. Without options, nothing goes wrong in it."""

    random: Random
    weather: Weather
    mishaps: Mishaps = Mishaps()
    layers: LayerPolicy | None = None
    """Which checkpoints build on earlier ones; None: as the job says."""
    concurrent: int = 1
    """Checkpoints under way at a time."""
    max_rows: int = 12
    """Rows of a poll at most."""
    output: OutputTables = field(default_factory=OutputTables)
    logs: list[CheckpointLog] = field(default_factory=lambda: [CheckpointLog()])
    """What each job manager remembers of snapshots; the last one lives."""
    now: Micros = BEGIN
    storage: MemoryStorage = field(init=False)
    records: Records = field(init=False)

    def __post_init__(self) -> None:
        self.storage = MemoryStorage(self.weather.before_write)
        self.records = Records(self.storage, self.weather)

    def lose_job_manager(self) -> None:
        """A job manager is gone, and with it what it remembers; another one takes its place."""
        self.logs.append(CheckpointLog())
        self.records.recover()
