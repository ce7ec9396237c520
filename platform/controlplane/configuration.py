"""What is configured by the environment, for people: which variables there are, and which are set.

    HEADWATER_NAME   meaning, as `environment.py` describes it

Guarantee  no value is told: some are secrets, and a name is enough to look it up where it was set.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass

import django
from django.db import connection

from controlplane import environment
from engine.version import VERSION

_LINE = re.compile(r"(?P<name>HEADWATER_\w+)(?:\s+(?P<meaning>.+))?")


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable."""

    name: str
    meaning: str
    is_set: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Something that the platform runs on."""

    name: str
    version: str


def variables(environ: Mapping[str, str] = os.environ) -> tuple[Variable, ...]:
    """Every variable that the platform reads; `NAME_FILE` sets those that are described with it."""
    found: list[tuple[str, str]] = []
    for line in (environment.__doc__ or "").splitlines():
        if match := _LINE.fullmatch(line):
            found.append((match["name"], match["meaning"] or ""))
        elif found and line.startswith(" "):
            name, meaning = found.pop()
            found.append((name, f"{meaning} {line.strip()}".strip()))
    return tuple(
        Variable(name, meaning, any(map(environ.get, _names(name, meaning))))
        for name, meaning in found
    )


def _names(name: str, meaning: str) -> tuple[str, ...]:
    of_file = f"{name}_FILE"
    return (name, of_file) if of_file in meaning.split() else (name,)


def parts() -> tuple[Part, ...]:
    """The platform, and what it runs on."""
    database = "SQLite" if connection.vendor == "sqlite" else connection.display_name
    version = ".".join(map(str, connection.get_database_version()))
    return (
        Part("Headwater", VERSION),
        Part("Python", platform.python_version()),
        Part("Django", django.get_version()),
        Part(database, version),
    )
