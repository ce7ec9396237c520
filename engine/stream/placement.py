"""Placement: how rows reach the subtasks of the next step, and which steps share a thread.

    forward     ── stay in their subtask
    rebalance   ── each batch to the next subtask in turn
    rescale     ── the same, among the subtasks next to this one

Order    the rows of a split may overtake each other when they are dealt out; which of them are late
         was decided at the source. Functions that depend on order take rows in that of event time.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from engine.graph.jobgraph import Partitioning
from engine.graph.logical import Chaining, Input

if TYPE_CHECKING:
    from engine.stream.environment import Environment


class Placement:
    """What an author may say of where steps run."""

    env: Environment
    outputs: tuple[Input, ...]

    def rebalance(self) -> Self:
        """Deal batches out to all subtasks of the next step in turn, whatever its parallelism."""
        return self._dealt(Partitioning.REBALANCE)

    def rescale(self) -> Self:
        """As `rebalance`, but each subtask only deals out to its share of those that follow."""
        return self._dealt(Partitioning.RESCALE)

    def forward(self) -> Self:
        """Keep rows in their subtask: the next step must have the same parallelism."""
        return self._dealt(Partitioning.FORWARD)

    def start_new_chain(self) -> Self:
        """Have the last step begin a thread of its own, which those that follow may share."""
        return self._chained(Chaining.HEAD)

    def disable_chaining(self) -> Self:
        """Have the last step run in a thread of its own, which no other step shares."""
        return self._chained(Chaining.NEVER)

    def _dealt(self, how: Partitioning) -> Self:
        dealt = copy(self)
        dealt.outputs = tuple(replace(output, dealt=how) for output in self.outputs)
        return dealt

    def _chained(self, chaining: Chaining) -> Self:
        for output in self.outputs:
            self.env.set_chaining(output.node, chaining)
        return self
