"""From a program on disk to the graph of its job; in the build step, or where a job is embedded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from engine.graph.jobgraph import JobGraph
from engine.programs import intake
from engine.programs.archive import unpack
from engine.programs.entry import Entry, beginning, parse_entry
from engine.programs.packing import locate
from engine.stream.capture import capture, capture_function, capture_module


def load(
    code: Path,
    entry: str | None,
    args: Sequence[str],
    settings: Mapping[str, str],
    *,
    by_value: bool = False,
) -> JobGraph:
    """Run a job file, or the entry of a folder with code; return its graph. Raises ArtifactError.

    `by_value`: modules beside a job file go with the graph, because workers do not have them.
    """
    folder = code if code.is_dir() else code.parent
    if entry:
        begins: Path | Entry = parse_entry(entry)
    else:
        begins = beginning(code, f"program {code.name}") if code.is_dir() else code
    if isinstance(begins, Path):
        return capture(begins, args, settings, by_value=by_value)
    if begins.function is None:
        return capture_module(begins.module, folder.resolve(), args, settings)
    return capture_function(begins.module, begins.function, folder.resolve(), args, settings)


@contextmanager
def opened(what: str, entry: str | None = None) -> Iterator[tuple[Path, str | None]]:
    """A program of this disk as `load` takes it: its code, and its entry. Raises ArtifactError.

    An archive is unpacked into a folder that is there as long as the block runs.
    """
    found = locate(what, entry)
    if found.path.suffix not in intake.ARCHIVE_SUFFIXES or found.path.is_dir():
        yield found.path, found.entry
        return
    with tempfile.TemporaryDirectory(prefix="program-") as folder:
        unpack(found.path, Path(folder), found.path.name)
        yield Path(folder), found.entry
