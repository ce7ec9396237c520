"""The logical graph: operators as the author wired them, before they are chained.

    Node ──Input(node, tag, port, keys)──▶ Node

Shapes   a node has one operator; an input with keys is a shuffle by hash, one without keeps rows
         where they are when it can.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.errors import GraphError
from engine.graph.jobgraph import AnyOperator
from engine.operators.contract import MAIN


@dataclass(frozen=True, slots=True)
class Input:
    """What a node takes from an earlier one."""

    node: Node
    tag: str = MAIN
    port: int = 0
    keys: tuple[str, ...] = ()
    broadcast: bool = False
    """Whether every subtask gets all rows."""


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
        chosen = uid if uid is not None else self._next_uid(operator.name)
        if not chosen.strip():
            msg = f"uid of a {operator.name} is empty: got {uid!r}; give it a name"
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

    def _check_parallelism(self, subject: str, parallelism: int) -> None:
        if not 1 <= parallelism <= self.max_parallelism:
            msg = (
                f"parallelism of {subject!r} is out of range: got {parallelism}; "
                f"pass 1 to {self.max_parallelism}, the job's max_parallelism"
            )
            raise GraphError(msg)

    def _next_uid(self, kind: str) -> str:
        """Automatic uids count operators of a kind, in the order of the job file."""
        number = self._automatic[kind] = self._automatic.get(kind, 0) + 1
        return f"{kind}-{number}"
