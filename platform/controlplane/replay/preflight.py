"""What a replay would restore: asked of the engine before anything is started.

Errors   Refused: 409 with the engine's own sentence, 502 when it does not answer.
"""

from __future__ import annotations

from collections.abc import Collection
from types import MappingProxyType

from controlplane.access.errors import Refused, conflict
from controlplane.backends.contract import SETTING_POSITIONS, Preflight, Start
from controlplane.backends.errors import EngineAway, EngineError
from controlplane.backends.registry import client_for
from controlplane.jobs.models import JobVersion
from controlplane.jobs.settings import checked_parallelism, settings_from
from controlplane.replay.positions import Positions, setting_of
from controlplane.snapshots.models import Savepoint
from controlplane.snapshots.usable import why_unusable


def preflight(
    savepoint: Savepoint,
    version: JobVersion,
    parallelism: int,
    drop: Collection[str] = (),
    accept_missing: Collection[str] = (),
    positions: Positions = MappingProxyType({}),
) -> Preflight:
    """What would become of each operator's state; the engine builds the graph for it.

    `drop`: state (uid, or uid/state) that may be left behind; `accept_missing`: sources (uid) that
    may go on without input which is not there any more; `positions`: where some begin instead.
    """
    check_fit(savepoint, version)
    job = savepoint.job
    settings, engine = settings_from(job.settings), client_for(job.cluster)
    try:
        artifact_id = engine.upload(version.filename, version.artifact)
        return engine.preflight(
            Start(
                artifact_id=artifact_id,
                engine_job_id="",
                parallelism=checked_parallelism(parallelism),
                arguments=settings.arguments,
                settings=settings.for_engine(job.name) | elsewhere(positions),
                savepoint_path=savepoint.location,
                allow_non_restored=frozenset(drop),
                accept_missing_input=frozenset(accept_missing),
            )
        )
    except EngineAway as error:
        raise Refused(502, "engine", error.message) from error
    except EngineError as error:
        raise conflict(error.message) from error


def elsewhere(positions: Positions) -> dict[str, str]:
    """The engine's setting for sources that begin elsewhere."""
    return {SETTING_POSITIONS: setting_of(positions)} if positions else {}


def check_fit(savepoint: Savepoint, version: JobVersion) -> None:
    """Refuse a savepoint that nothing can start from, or a version of another job."""
    if version.job_id != savepoint.job_id:
        msg = f"version {version.number} is not one of {savepoint.job.name}: choose again"
        raise conflict(msg)
    if reason := why_unusable(savepoint):
        msg = f"savepoint {savepoint.pk} cannot be replayed from: {reason}"
        raise conflict(msg)
