"""Every error that the engine raises on purpose.

    HeadwaterError
     +-- UserError            the job, its code or its arguments are wrong: fail, show why
     |    +-- GraphError      found while the graph is built
     |    +-- ConfigError     a setting, an argument or an address is wrong
     |    +-- ArtifactError   the submitted file cannot be turned into a graph
     |    +-- FunctionError   a user function raised: carries operator, row and traceback
     |    +-- DataError       a record of the input cannot be read
     |    +-- RestoreError    a snapshot does not fit the job
     +-- ExternalError        the world failed: restart with back-off
     |    +-- SourceError, SinkError, StorageError, StateError, ConnectionLost, RequestFailed
     |    +-- SnapshotCorrupt a file of a snapshot is missing, torn or altered
     +-- InternalError        a bug in us: fail, keep the dump

A message reads: subject, what is wrong: what was given; what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Domain(StrEnum):
    """Whose fault an error is, which decides what the runtime does about it."""

    USER = "user"
    EXTERNAL = "external"
    INTERNAL = "internal"


class HeadwaterError(Exception):
    """Root of all errors of the engine."""

    domain = Domain.INTERNAL


class UserError(HeadwaterError):
    """The job, its code or its arguments are wrong; running it again cannot help."""

    domain = Domain.USER


class GraphError(UserError):
    """A job graph that cannot run, found while it is built."""


class ConfigError(UserError):
    """A setting, argument or address that cannot be used."""


class ArtifactError(UserError):
    """A submitted file that cannot be turned into a job graph."""


class FunctionError(UserError):
    """A user function raised; the message names the operator and shows the row, shortened."""


class DataError(UserError):
    """A record of the input that cannot be read; the message says where it is and shows it."""


class RestoreError(UserError):
    """A snapshot that does not fit the job graph it should restore."""


class SnapshotMissing(RestoreError):
    """There is no snapshot (any more) where one was looked for."""


class ExternalError(HeadwaterError):
    """The world failed; the runtime restarts the job with back-off."""

    domain = Domain.EXTERNAL


class SourceError(ExternalError):
    """A source could not be read."""


class SinkError(ExternalError):
    """A sink could not be written or committed."""


class StorageError(ExternalError):
    """Snapshot storage could not be read or written."""


class StateError(ExternalError):
    """State on the local disk could not be read or written."""


class SnapshotCorrupt(StorageError):
    """A file of a snapshot is missing, torn or altered."""


class ConnectionLost(ExternalError):
    """A process at the other end of a channel is gone."""


class RequestFailed(ExternalError):
    """What a row was asked of failed, or gave no answer in time."""


class InternalError(HeadwaterError):
    """A bug in the engine."""


def error_json(error: HeadwaterError) -> dict[str, str]:
    """An error as JSON, for another process."""
    return {"name": type(error).__name__, "message": str(error)}


def error_from_json(
    body: Mapping[str, str], *known: type[HeadwaterError], otherwise: type[HeadwaterError]
) -> HeadwaterError:
    """Read what `error_json` gave: an error of a `known` kind, or else of another one.

    >>> error_from_json({"name": "RestoreError", "message": "…"}, UserError, otherwise=StateError)
    RestoreError('…')
    >>> error_from_json({"name": "SystemExit", "message": "…"}, UserError, otherwise=StateError)
    StateError('…')
    """
    kind = globals().get(body["name"])
    if isinstance(kind, type) and issubclass(kind, known):
        return kind(body["message"])
    return otherwise(body["message"])
