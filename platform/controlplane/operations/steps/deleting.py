"""Steps that delete the files of a snapshot: ask for it, see them gone.

Guarantee   What is there counts, not what the engine says of a deletion: one that it has forgotten
            may have been done all the same, and is asked for again when not.
"""

from __future__ import annotations

from controlplane.backends.errors import EngineRefused, NoSnapshot, UnknownTrigger
from controlplane.operations.contract import Context, Done, Outcome, StepFailed, Wait


def delete(context: Context, location: str) -> Done:
    """Ask the engine to delete the files, unless they are gone."""
    if is_gone(context, location):
        return Done({"gone": True})
    return Done({"trigger": context.engine.dispose(location)})


def await_gone(context: Context, location: str, what: str) -> Outcome:
    """See them gone; `what` names them in the sentence of a failure."""
    if context.result.get("gone"):
        return Done()
    try:
        failure = context.engine.disposal(context.result["trigger"])
    except UnknownTrigger:
        return Wait("asked the engine again", 1.0, delete(context, location).found, retry=True)
    if failure is None:
        return Wait("waits for the engine to delete the files")
    if failure and not is_gone(context, location):
        msg = f"{what} is not deleted: {failure}"
        raise StepFailed(msg)
    return Done({"gone": True})


def is_gone(context: Context, location: str) -> bool:
    """Whether nothing lies there; what the engine only refuses to read does."""
    try:
        context.engine.savepoint(location)
    except NoSnapshot:
        return True
    except EngineRefused:
        return False
    return False
