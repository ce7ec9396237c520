"""The logical graph: operators as the author wired them, before they are chained.

    Node ──Input(node, tag, port, keys, dealt)──▶ Node

Shapes   a node has one operator; an input with keys is a shuffle by hash, one that is not dealt in
         a certain way keeps rows where they are when it can.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from engine.errors import GraphError
from engine.graph.jobgraph import AnyOperator, Partitioning
from engine.operators.contract import MAIN


@dataclass(frozen=True, slots=True)
class Input:
    """What a node takes from an earlier one."""

    node: Node
    tag: str = MAIN
    port: int = 0
    keys: tuple[str, ...] = ()
    dealt: Partitioning | None = None
    """How rows are dealt out, when the author said so."""


class Chaining(Enum):
    """Which neighbours an operator may share a thread with."""

    ALWAYS = auto()
    HEAD = auto()
    """With those that follow, not with those before."""
    NEVER = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operator of the job."""

    uid: str
    name: str
    operator: AnyOperator
    parallelism: int
    inputs: tuple[Input, ...] = ()
    explicit_uid: bool = True
    """Whether the author chose the uid."""


@dataclass(slots=True)
class LogicalGraph:
    """All nodes of a job, each after its inputs."""

    name: str
    max_parallelism: int
    nodes: list[Node] = field(default_factory=list)
    chaining: Chaining = Chaining.ALWAYS
    """For operators of which nothing else is said."""
    _chaining: dict[Node, Chaining] = field(default_factory=dict)
    _automatic: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        operator: AnyOperator,
        inputs: tuple[Input, ...],
        parallelism: int,
        uid: str | None,
        name: str | None,
    ) -> Node:
        """Add an operator behind its inputs. Raises GraphError."""
        self._check_parallelism(uid or operator.name, parallelism)
        _check_forward(uid or operator.name, parallelism, inputs)
        self._check_present(uid or operator.name, inputs)
        chosen = uid if uid is not None else self._next_uid(operator.name)
        if not isinstance(chosen, str) or not chosen.strip():
            msg = f"uid of a {operator.name} is empty or no text: got {uid!r}; give it a name"
            raise GraphError(msg)
        if any(node.uid == chosen for node in self.nodes):
            msg = (
                f"two operators have the uid {chosen!r}: a uid finds an operator's state in a "
                "snapshot; give each operator its own"
            )
            raise GraphError(msg)
        shown = name or uid or operator.name
        node = Node(chosen, shown, operator, parallelism, inputs, uid is not None)
        self.nodes.append(node)
        return node

    def replace(self, nodes: tuple[Node, ...], operator: AnyOperator) -> Node:
        """Put one source in the place of a source and steps behind it. Raises GraphError."""
        for node in self.nodes:
            if node not in nodes and any(source.node in nodes for source in node.inputs):
                msg = (
                    f"rows before timestamps and watermarks are assigned go to {node.uid!r} too; "
                    "let it read the stream that has them"
                )
                raise GraphError(msg)
        source = nodes[0]
        made = Node(source.uid, source.name, operator, source.parallelism, (), source.explicit_uid)
        self.nodes[self.nodes.index(source)] = made
        self.nodes = [node for node in self.nodes if node not in nodes]
        return made

    def set_chaining(self, node: Node, chaining: Chaining) -> None:
        """Say where an operator may run."""
        self._chaining[node] = chaining

    def chaining_of(self, node: Node) -> Chaining:
        """Where an operator may run."""
        return self._chaining.get(node, self.chaining)

    def _check_parallelism(self, subject: str, parallelism: int) -> None:
        if not isinstance(parallelism, int) or not 1 <= parallelism <= self.max_parallelism:
            msg = (
                f"parallelism of {subject!r} is out of range: got {parallelism!r}; "
                f"pass 1 to {self.max_parallelism}, the job's max_parallelism"
            )
            raise GraphError(msg)

    def _check_present(self, subject: str, inputs: tuple[Input, ...]) -> None:
        for source in inputs:
            if source.node not in self.nodes:
                msg = (
                    f"{subject!r} reads {source.node.uid!r} as it was before timestamps and "
                    "watermarks were assigned; let it read the stream that has them"
                )
                raise GraphError(msg)

    def _next_uid(self, kind: str) -> str:
        """Automatic uids count operators of a kind, in the order of the job file."""
        number = self._automatic[kind] = self._automatic.get(kind, 0) + 1
        return f"{kind}-{number}"


def _check_forward(subject: str, parallelism: int, inputs: tuple[Input, ...]) -> None:
    for source in inputs:
        if source.dealt is Partitioning.FORWARD and source.node.parallelism != parallelism:
            msg = (
                f"{subject!r} cannot take rows forward: its parallelism {parallelism} meets "
                f"{source.node.parallelism} of {source.node.uid!r}; make them equal, or use "
                "rebalance"
            )
            raise GraphError(msg)
