"""What one setting may be, each rule with the sentence that refuses a value.

Errors   Refused (400) with the field and one sentence.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from controlplane.access.errors import invalid

MAX_PARALLELISM = 128
MAX_TAGS = 20
_TAG = re.compile(r"[a-z0-9][a-z0-9._:-]{0,39}")


def whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number of that range. Raises Refused."""
    number = isinstance(value, int) and not isinstance(value, bool)
    if not number or not low <= value <= high:  # type: ignore[operator]
        msg = f"{name} must be a whole number from {low} to {high}: got {value!r}"
        raise invalid(msg, name)
    return int(value)  # type: ignore[call-overload,no-any-return]


def whole_or_none(name: str, value: object, low: int, high: int) -> int | None:
    """A whole number of that range, or nothing chosen. Raises Refused."""
    return None if value is None else whole(name, value, low, high)


def truth(name: str, value: object) -> bool:
    """Yes or no. Raises Refused."""
    if not isinstance(value, bool):
        msg = f"{name} must be true or false: got {value!r}"
        raise invalid(msg, name)
    return value


def truth_or_none(name: str, value: object) -> bool | None:
    """Yes, no, or nothing chosen. Raises Refused."""
    return None if value is None else truth(name, value)


def choice_or_none(name: str, value: object, choices: Sequence[str]) -> str | None:
    """One of these, or nothing chosen. Raises Refused."""
    if value is None or value == "":
        return None
    if value not in choices:
        msg = f"{name} is not known: got {value!r}; use one of {', '.join(choices)}"
        raise invalid(msg, name)
    return str(value)


def checked_parallelism(value: object) -> int:
    """A parallelism. Raises Refused."""
    return whole("parallelism", value, 1, MAX_PARALLELISM)


def split_arguments(text: str) -> tuple[str, ...]:
    """The arguments in one line of text, split as a shell would. Raises Refused."""
    try:
        return arguments(shlex.split(text))
    except ValueError as error:
        msg = f"arguments cannot be split: {str(error).lower()}; close every quote"
        raise invalid(msg, "arguments") from None


def arguments(values: object) -> tuple[str, ...]:
    """What the job file gets as its arguments. Raises Refused."""
    found = _texts("arguments", values, "write them as in a shell")
    if len(found) > 100 or any(len(value) > 1_000 or "\0" in value for value in found):
        msg = "arguments are too many or too long: at most 100 of at most 1,000 characters"
        raise invalid(msg, "arguments")
    return found


def tags(values: object) -> tuple[str, ...]:
    """Words by which people find the job, sorted, each once. Raises Refused."""
    found = tuple(sorted(set(_texts("tags", values, 'give e.g. ["nightly"]'))))
    bad = next((tag for tag in found if not _TAG.fullmatch(tag)), None)
    if bad is not None:
        msg = (
            f"tags cannot have {bad[:60]!r}: use up to 40 small letters, digits, dots, dashes, "
            "colons and underscores, beginning with a letter or digit"
        )
        raise invalid(msg, "tags")
    if len(found) > MAX_TAGS:
        msg = f"tags are too many: got {len(found)}; a job has at most {MAX_TAGS}"
        raise invalid(msg, "tags")
    return found


def _texts(name: str, values: object, advice: str) -> tuple[str, ...]:
    listed = isinstance(values, Sequence) and not isinstance(values, str)
    if not listed or not all(isinstance(value, str) for value in values):  # type: ignore[attr-defined]
        msg = f"{name} must be a list of texts: {advice}"
        raise invalid(msg, name)
    return tuple(str(value) for value in values)  # type: ignore[attr-defined]
