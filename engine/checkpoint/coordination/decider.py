"""Which snapshots may be under way at the same time: one pure rule.

    beside it may begin      checkpoint                 savepoint    stop, drain, final checkpoint
    checkpoint               up to `concurrent`         yes          as its kind
    savepoint                yes                        no           no
    stop, drain, final       no                         no           no

A savepoint need not wait for checkpoints, nor they for it. One that ends the job waits for a
savepoint under way, which would otherwise be lost with the job; behind it nothing has to begin.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.elements import AfterBarrier, Barrier, SnapshotKind


def may_begin(
    kind: SnapshotKind, then: AfterBarrier, under_way: Sequence[Barrier], concurrent: int
) -> bool:
    """Whether those under way leave room for one more.

    >>> checkpoint = Barrier(7)
    >>> may_begin(SnapshotKind.CHECKPOINT, AfterBarrier.CONTINUE, [checkpoint], concurrent=1)
    False
    >>> may_begin(SnapshotKind.SAVEPOINT, AfterBarrier.STOP, [checkpoint], concurrent=1)
    True
    """
    if any(barrier.then is not AfterBarrier.CONTINUE for barrier in under_way):
        return False
    savepoints = sum(barrier.kind is SnapshotKind.SAVEPOINT for barrier in under_way)
    if savepoints and then is not AfterBarrier.CONTINUE:
        return False
    if kind is SnapshotKind.SAVEPOINT:
        return not savepoints
    return len(under_way) - savepoints < concurrent
