"""File names from clients: only the last segment counts, and it must be a harmless one."""

from __future__ import annotations

import re

from engine.programs.intake import SUFFIXES
from engine.rest.errors import BadRequest

MAX_LENGTH = 100

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+ -]*")


def safe_filename(given: str) -> str:
    r"""The name of an uploaded program as one safe path segment. Raises BadRequest.

    >>> safe_filename("C:\\jobs\\flights.py"), safe_filename("../../flights.py")
    ('flights.py', 'flights.py')
    """
    name = re.split(r"[/\\]", given)[-1]
    if not name.endswith(SUFFIXES):
        msg = (
            f"only Python programs are allowed: got {given[:80]!r}; send a job file ending in .py, "
            "a zip or a wheel"
        )
        raise BadRequest(msg)
    if not _SAFE.fullmatch(name) or len(name) > MAX_LENGTH:
        msg = (
            f"file name cannot be used: got {given[:80]!r}; "
            "use letters, digits, dots, dashes and underscores"
        )
        raise BadRequest(msg)
    return name
