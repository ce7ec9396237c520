"""Secrets struck out of what is written down: by the name that they stand under.

{"password": "x"}            {"password": "•••"}
["--api-key", "x", "-v"]     ["--api-key", "•••", "-v"]
"--token=x"                  "--token=•••"
"kafka://bob:x@host/in"      "kafka://bob:•••@host/in"
"""

from __future__ import annotations

import re
from typing import Any

STRUCK = "•••"

_SECRET = re.compile(
    r"pass(?:word|wd|phrase)|secret|token|api[-_.]?key|private[-_.]?key|access[-_.]?key"
    r"|credential|authorization",
    re.IGNORECASE,
)
_OPTION = re.compile(r"(?P<name>-{0,2}[\w.-]+)(?P<mark>\s*[=:]\s*|\s+)(?P<value>\S+)")
_URL = re.compile(r"(?P<before>[a-z][\w+.-]*://[^\s:/@]*):[^\s/@]+@", re.IGNORECASE)


def redacted(value: Any) -> Any:
    """The value, of JSON's types, without what looks like a secret.

    >>> redacted({"arguments": ["--password", "x"], "parallelism": 2})
    {'arguments': ['--password', '•••'], 'parallelism': 2}
    """
    match value:
        case dict():
            return {key: _under(str(key), one) for key, one in value.items()}
        case list() | tuple():
            return _arguments(list(value))
        case str():
            return redacted_text(value)
        case _:
            return value


def redacted_text(text: str) -> str:
    """The text, without the values that follow names of secrets, and passwords in addresses.

    >>> redacted_text("--secret=x at redis://:x@host/0")
    '--secret=••• at redis://:•••@host/0'
    """
    return _OPTION.sub(_option, _URL.sub(rf"\g<before>:{STRUCK}@", text))


def _under(name: str, value: Any) -> Any:
    if _SECRET.search(name) and value not in ("", None, False, True):
        return STRUCK
    return redacted(value)


def _arguments(values: list[Any]) -> list[Any]:
    """A list of words, where a secret may follow its option."""
    told: list[Any] = []
    follows = False
    for one in values:
        told.append(STRUCK if follows else redacted(one))
        is_option = isinstance(one, str) and one.startswith("-") and "=" not in one
        follows = is_option and bool(_SECRET.search(one))
    return told


def _option(found: re.Match[str]) -> str:
    """`--token x`, `token=x`, `token: x`; words in a sentence stay."""
    name, mark = found["name"], found["mark"]
    spaced = not mark.strip()
    if not _SECRET.search(name) or (spaced and not name.startswith("-")):
        return found[0]
    return f"{name}{mark}{STRUCK}"
