"""The packages that a program needs beside those of the engine.

    flights.py         # /// script          inline metadata (PEP 723): dependencies = […]
                                             and requires-python = "…", which must admit ours
    folder, zip        requirements.txt      one requirement a line, as `pip freeze` writes them
    wheel              METADATA              its Requires-Dist

Refused  options, paths and file addresses: a program names packages, and the engine's owner decides
         where they come from, by pip's own variables (PIP_INDEX_URL, PIP_FIND_LINKS, …).
"""

from __future__ import annotations

import platform
import re
import tomllib
from collections.abc import Iterable, Iterator
from email.parser import BytesHeaderParser
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from engine.errors import ArtifactError
from engine.programs.entry import MAIN

FILE = "requirements.txt"
OURS = "headwater"
"""Is there by definition, whether or not it was installed as a package."""
MAX_REQUIREMENTS = 1_000
PYTHON = platform.python_version()

_BLOCK = re.compile(r"^# /// script[ \t]*\r?\n((?:#(?: .*)?\r?\n)+?)# ///[ \t]*\r?$", re.MULTILINE)
_REQUIREMENT = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*([<>=!~;@(].*|--hash.*)?"
)


def of_file(path: Path) -> tuple[str, ...]:
    """Requirements in the inline metadata of a job file. Raises ArtifactError."""
    text = path.read_text(encoding="utf-8", errors="replace")
    match = _BLOCK.search(text)
    if match is None:
        return ()
    lines = (line[2:] for line in match[1].splitlines())
    try:
        metadata = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        msg = f"script metadata of {path.name} cannot be read: {error}; correct it"
        raise ArtifactError(msg) from error
    _check_python(metadata.get("requires-python", ""), path.name)
    given = metadata.get("dependencies", [])
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        msg = (
            f"script metadata of {path.name} has no list of texts as dependencies: got {given!r}"
            '; write e.g. dependencies = ["rich>=13"]'
        )
        raise ArtifactError(msg)
    return _checked(given, path.name)


def _check_python(wanted: object, where: str) -> None:
    """Refuse a program that the engine's own interpreter cannot run. Raises ArtifactError."""
    try:
        admitted = SpecifierSet(wanted if isinstance(wanted, str) else repr(wanted))
    except InvalidSpecifier as error:
        msg = (
            f"{where} has a requires-python that is none: got {wanted!r}"
            '; write e.g. requires-python = ">=3.11"'
        )
        raise ArtifactError(msg) from error
    if not admitted.contains(PYTHON, prereleases=True):
        msg = (
            f"{where} requires Python {wanted}, this engine runs {PYTHON}; change "
            "requires-python, or run an engine on such a Python"
        )
        raise ArtifactError(msg)


def of_folder(folder: Path) -> tuple[str, ...]:
    """Requirements of an unpacked program. Raises ArtifactError."""
    listed = folder / FILE
    if listed.is_file():
        return _checked(_lines(listed.read_text(encoding="utf-8", errors="replace")), FILE)
    for metadata in sorted(folder.glob("*.dist-info/METADATA")):
        with metadata.open("rb") as file:
            headers = BytesHeaderParser().parse(file)
        _check_python(headers.get("Requires-Python", ""), "METADATA")
        return _checked(headers.get_all("Requires-Dist", []), "METADATA")
    main = folder / MAIN
    return of_file(main) if main.is_file() else ()


def _lines(text: str) -> Iterator[str]:
    """Lines of a requirements file, without comments, and those that go on put together."""
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        yield re.sub(r"(^|\s)#.*", "", line)


def _checked(given: Iterable[str], where: str) -> tuple[str, ...]:
    found = [" ".join(one.split()) for one in given if one.strip()]
    if len(found) > MAX_REQUIREMENTS:
        msg = f"{where} lists too many packages: got {len(found):,}; at most {MAX_REQUIREMENTS:,}"
        raise ArtifactError(msg)
    names = []
    for one in found:
        match = _REQUIREMENT.fullmatch(one)
        if match is None or "file:" in one.lower():
            msg = (
                f"{where} has a line that names no package: got {one[:80]!r}; write e.g. rich>=13"
                ", and leave options to the engine's PIP_… variables"
            )
            raise ArtifactError(msg)
        names.append(match[1])
    return tuple(
        one
        for one, name in zip(found, names, strict=True)
        if name.replace("_", "-").lower() != OURS
    )
