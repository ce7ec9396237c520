"""The folder of savepoints on this machine: what lies in it, and removing what cannot be used.

    <root>/<job>/<operation>/<savepoint>/_metadata      complete
    <root>/<job>/<operation>/<savepoint>/…              without one: on its way, or left behind

Deleting savepoints is the engine's business: it knows which ones jobs need. Only what has no
manifest, and so is nothing to an engine, is removed here, and folders that nothing is in.

Errors   EngineRefused, with one sentence.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from controlplane.backends.errors import EngineRefused
from controlplane.backends.snapshot_contract import StoredFolder

METADATA = "_metadata"


def stored(root: Path) -> Sequence[StoredFolder]:
    """Every savepoint and what is left of any."""
    try:
        return tuple(sorted(_found(root), key=lambda folder: folder.location))
    except OSError as error:
        msg = f"folder {root} cannot be listed: {error.strerror or error}; check its rights"
        raise EngineRefused(msg) from error


def clear(location: str, root: Path) -> None:
    """Remove what is left of a savepoint."""
    folder = Path(location.removeprefix("file://"))
    inside = folder.resolve().relative_to(root.resolve()) if _is_below(folder, root) else None
    if inside is None or len(inside.parts) != 3 or folder.is_symlink():
        msg = f"folder {location} is not removed: it is no savepoint's folder below {root}"
        raise EngineRefused(msg)
    if (folder / METADATA).exists():
        msg = f"folder {location} is not removed: it is a complete savepoint; delete that instead"
        raise EngineRefused(msg)
    try:
        shutil.rmtree(folder, ignore_errors=False)
    except FileNotFoundError:
        return
    except OSError as error:
        msg = f"folder {location} cannot be removed: {error.strerror or error}; check its rights"
        raise EngineRefused(msg) from error


def tidy(root: Path, before: datetime) -> None:
    """Remove folders in which nothing has been since; what was deleted or failed leaves them."""
    for folder in [*root.glob("*/*/*"), *root.glob("*/*")]:
        with suppress(OSError):  # not empty, or gone, or not ours
            if _is_below(folder, root) and folder.stat().st_mtime < before.timestamp():
                folder.rmdir()


def _is_below(folder: Path, root: Path) -> bool:
    return folder.resolve().is_relative_to(root.resolve())


def _found(root: Path) -> Iterator[StoredFolder]:
    for folder in root.glob("*/*/*"):
        if not folder.is_dir() or folder.is_symlink():
            continue
        stats = [file.stat() for file in folder.rglob("*") if file.is_file()]
        if stats:
            yield StoredFolder(
                str(folder),
                (folder / METADATA).is_file(),
                sum(stat.st_size for stat in stats),
                int(max(stat.st_mtime for stat in stats) * 1000),
            )
