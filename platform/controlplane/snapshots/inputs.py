"""Until when a savepoint can be replayed: what its sources said of the input that it needs.

    {"at": ISO time, "why_not": "", "sources": [{"uid", "gone": [text], "unknown": splits}]}

No source that we know tells when it will give input up; files, tables and generators tell what is
there now. So the answer is a look with its age, made by every verification.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class KnownInput:
    """The last look, for people."""

    state: str
    """there, gone or unknown."""
    text: str
    at: datetime | None
    """When it was looked for; None: never."""


def known_input(kept: dict[str, Any]) -> KnownInput:
    """What was found.

    >>> known_input({}).text
    'unknown: nobody has looked; Verify asks its sources'
    """
    if not kept:
        text = "unknown: nobody has looked; Verify asks its sources"
        return KnownInput("unknown", text, None)
    at, sources = datetime.fromisoformat(kept["at"]), kept["sources"]
    if kept["why_not"]:
        return KnownInput("unknown", f"unknown: {kept['why_not']}", at)
    gone = [f"{one['uid']}: {'; '.join(one['gone'])}" for one in sources if one["gone"]]
    if gone:
        return KnownInput("gone", f"not any more without consent: {'; '.join(gone)}", at)
    unsure = [one["uid"] for one in sources if one["unknown"]]
    if unsure or not sources:
        what = ", ".join(unsure) or "its sources"
        return KnownInput("unknown", f"unknown: {what} cannot tell which input is left", at)
    text = "its input is changed: all that it needs was there, and no source says for how long"
    return KnownInput("there", text, at)
