"""What processes leave on disk when they are killed: sockets, and folders of state.

    runtime/01234567-0.sock            workers of attempts that are gone
    runtime/control.sock               a job manager that is gone
    <localdir>/headwater-state-…       state on disk of workers that are gone

Others   keep sockets in the same folder; only what this engine calls its own is touched.
Order    to be called when the processes are gone. A folder that cannot be removed now is left to
         the next one who sweeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from engine.graph.plan import Plan
from engine.runtime.control import SOCKET_NAME
from engine.runtime.worker_exchange import DATA_SOCKETS
from engine.state.scratch import remove_orphans, temporary_folder
from engine.stream.recording import ROCKSDB_FOLDER


def sweep_sockets(runtime: Path) -> None:
    """Remove the sockets of workers and job managers, of which none may run."""
    for path in (runtime / SOCKET_NAME, *runtime.glob(DATA_SOCKETS)):
        path.unlink(missing_ok=True)


async def sweep_state(plan: Plan, settings: Mapping[str, str]) -> None:
    """Remove the folders that dead workers of a job had their state in."""
    if plan.state_backend == "rocksdb":
        given = settings.get(ROCKSDB_FOLDER)
        await asyncio.to_thread(remove_orphans, Path(given) if given else temporary_folder())
