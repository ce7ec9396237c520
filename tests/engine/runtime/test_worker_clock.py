"""A subtask on a real thread hears of the clock, though no element comes."""

from __future__ import annotations

import queue

import polars as pl

from engine.elements import Batch
from engine.graph.jobgraph import ChainedOperator, JobVertex
from engine.operators.contract import Context, Operator
from engine.runtime.channels import Endpoint, LocalChannel
from engine.runtime.mailbox import Mailbox
from engine.runtime.spec import TaskSpec
from engine.runtime.worker_exchange import Ports
from engine.runtime.worker_subtask import Subtask
from engine.testing.cluster import PATIENCE_S

HEARD: queue.Queue[tuple[int, int]] = queue.Queue()


class Alarm(Operator):
    """Wants to be called 20 ms after each batch, and tells when that was and when it is."""

    name = "alarm"

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        self.wanted = ctx.now + 20_000
        ctx.wake(self.wanted)

    def on_processing_time(self, now: int, ctx: Context) -> None:
        HEARD.put((self.wanted, now))


class Silent:
    def failed(self, spec, operator, error):
        raise error


def test_an_operator_is_called_when_the_clock_reaches_what_it_asked_for() -> None:
    vertex = JobVertex("alarm", "alarm", 1, (ChainedOperator("alarm", "alarm", Alarm()),))
    subtask = Subtask(TaskSpec("job", "attempt", vertex, 0, 128, (0,), ()), Silent(), 10)
    channel = LocalChannel(Endpoint(Mailbox(0, 1, 1), 0), Endpoint(subtask.mailbox, 0))
    subtask.start(None)
    assert subtask.ready.wait(PATIENCE_S)
    subtask.run(Ports(inputs={0: channel}))
    channel.send(Batch(pl.DataFrame({"n": [1]})))
    wanted, now = HEARD.get(timeout=PATIENCE_S)
    assert now >= wanted
    subtask.stop()
    subtask.join(PATIENCE_S)
