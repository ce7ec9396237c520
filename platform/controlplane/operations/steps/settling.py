"""A step that lets the worker of a superseded operation come to rest.

A worker may be in the middle of a call when its operation is ended from outside; what it asks the
engine then would undo what the operation that superseded it is about to do.
"""

from __future__ import annotations

from controlplane.operations.contract import Context, Done, Outcome, Wait
from controlplane.operations.models import Operation


def settle(context: Context) -> Outcome:
    """Wait until no worker holds an ended operation of the same scope."""
    own = context.operation
    held = Operation.objects.filter(
        scope=own.scope, state=Operation.State.CANCELLED, lease_until__gt=context.now
    )
    if held.exists():
        return Wait("waits for the operation that it ended to come to rest")
    return Done()
