r"""One sentence out of an error of Flink's, whose texts may hold whole Java stack traces.

    "org.apache…RestHandlerException: Could not run.\n\tat …\nCaused by: …: Job exists"
        ─▶ "Could not run. (Job exists)"

Sentences of our own engine pass unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_LENGTH = 1_000

_GENERIC = "Internal server error."
_SERVER_SIDE = "<Exception on server side:"
_JAVA_CLASS = re.compile(r"^(?:[a-z_][\w$]*\.)+[A-Z][\w$]*: ")
_CAUSED_BY = "Caused by: "


def first_sentence(text: str) -> str:
    r"""What a stack trace begins with, and its root cause when that says something else.

    >>> first_sentence("java.lang.IllegalStateException: poison key 7\n\tat KeyedCount.java")
    'poison key 7'
    """
    lines = [line.strip() for line in text.strip().splitlines()]
    shown = next((line for line in lines if line and line != _SERVER_SIDE), "")
    first = _without_classes(shown)
    causes = [line for line in lines if line.startswith(_CAUSED_BY)]
    root = _without_classes(causes[-1].removeprefix(_CAUSED_BY)) if causes else first
    sentence = first if root in first else f"{first} ({root})"
    return sentence[:MAX_LENGTH]


def refusal(errors: Iterable[object]) -> str:
    """The sentence of an error body's list."""
    texts = [text for text in errors if isinstance(text, str) and text.strip()]
    telling = [text for text in texts if text.strip() != _GENERIC] or texts
    return first_sentence(telling[0]) if telling else "the engine gave no reason"


def _without_classes(line: str) -> str:
    """Strip the Java classes that wrap a message, however many."""
    while found := _JAVA_CLASS.match(line):
        line = line[found.end() :]
    return line
