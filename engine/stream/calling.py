"""Calling the function that a program names as its entry, in any of the forms that people write.

    def main(): …; env.execute()             as in a job file
    def main(argv): …; env.execute()         `argv` or `args`: the job's arguments, as in Java
    def build() -> Environment: return env   what it returns is executed
    def build(env): …                        any other parameter: an environment of the job's name

Errors   ArtifactError for what is no function, needs more, or returns something else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from engine.errors import ArtifactError
from engine.stream.environment import Environment
from engine.stream.recording import current_recording

ARGUMENTS = frozenset({"argv", "args"})
JOB_NAME = "pipeline.name"


def call(function: object, name: str, args: Sequence[str]) -> None:
    """Call it, and execute the environment that it was given or that it returns."""
    if not callable(function):
        msg = f"entry {name} is no function: got {type(function).__name__}; check its name"
        raise ArtifactError(msg)
    recording = current_recording()
    assert recording is not None, "programs are called while they are recorded"
    wanted = _parameter(function, name)
    if wanted is None:
        made, result = None, function()
    elif wanted in ARGUMENTS:
        made, result = None, function(list(args))
    else:
        made = Environment(recording.settings.get(JOB_NAME) or name.rpartition(":")[2])
        result = function(made)
    if recording.graphs:
        return
    result = made if result is None else result
    if not isinstance(result, Environment):
        msg = (
            f"entry {name} gives no job: got {type(result).__name__}; call env.execute() in it"
            ", or return its Environment"
        )
        raise ArtifactError(msg)
    result.execute()


def _parameter(function: Callable[..., object], name: str) -> str | None:
    """The one parameter that must be given, or None. Raises ArtifactError."""
    needed = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if len(needed) > 1 or any(one.kind is one.KEYWORD_ONLY for one in needed):
        names = ", ".join(one.name for one in needed)
        msg = (
            f"entry {name} needs more than it can be given: got parameters {names}"
            "; take an Environment, or argv, or nothing"
        )
        raise ArtifactError(msg)
    return needed[0].name if needed else None
