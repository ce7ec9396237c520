"""Where a program begins: a module to run, or a function to call.

    package.module             run, as `python -m package.module`
    package.module:function    called, see `stream.calling`
    nothing                    what `python FOLDER` would run; or the only module; or the only
                               package with a __main__.py, as `python -m PACKAGE`

Flink calls it the entry class, and takes the first of these from the manifest of a jar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ArtifactError

MAIN = "__main__.py"

_NAMES = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_ENTRY = re.compile(rf"({_NAMES})(?::({_NAMES}))?")


@dataclass(frozen=True, slots=True)
class Entry:
    """A module to run or, with a function, to call."""

    module: str
    function: str | None = None

    def __str__(self) -> str:
        return self.module if self.function is None else f"{self.module}:{self.function}"


def parse_entry(text: str) -> Entry:
    """Read an entry. Raises ArtifactError.

    >>> parse_entry("flights.jobs:punctuality")
    Entry(module='flights.jobs', function='punctuality')
    """
    match = _ENTRY.fullmatch(text)
    if match is None:
        msg = (
            f"entry is not package.module or package.module:function: got {text[:80]!r}"
            "; pass e.g. flights.jobs:main"
        )
        raise ArtifactError(msg)
    return Entry(*match.groups())


def beginning(folder: Path, name: str) -> Path | Entry:
    """What an unpacked program runs when no entry is given: a file or a module.

    Raises ArtifactError.
    """
    main = folder / MAIN
    if main.is_file():
        return main
    modules = sorted(folder.glob("*.py"))
    if len(modules) == 1:
        return modules[0]
    packages = sorted(path.parent.name for path in folder.glob(f"*/{MAIN}"))
    if len(packages) == 1 and not modules:
        return Entry(packages[0])
    found = ", ".join([path.name for path in modules] + packages)[:200] or "no module at its top"
    msg = (
        f"{name} does not say where it begins: it has no {MAIN}, but {found}"
        "; name the entry, e.g. package.module:function"
    )
    raise ArtifactError(msg)
