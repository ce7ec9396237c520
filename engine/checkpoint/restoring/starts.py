"""Where sources shall begin instead of where the snapshot left them, as somebody has chosen.

    headwater.restore.positions = "flights=earliest; control=2013-03-01T00:00:00Z"

Order    the splits of the snapshot begin there, and event time of their source begins anew;
         operators keep theirs. So rows of windows that have closed are late, and what open windows
         have counted already is counted again.
Errors   RestoreError for what is no position, or no source of the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.checkpoint.format.manifest import Manifest
from engine.elements import MIN_TIME, Micros
from engine.errors import ConfigError, RestoreError
from engine.operators.span import moment_text, parse_moment

POSITIONS = "headwater.restore.positions"
EARLIEST = "earliest"

Starts = Mapping[str, Micros | None]
"""By uid of the source: a time, or None for its earliest row."""


def starts_of(settings: Mapping[str, str]) -> Starts:
    """What the settings of a job choose. Raises RestoreError.

    >>> starts_of({POSITIONS: "flights=earliest; control=1970-01-01T00:00:01Z"})
    {'flights': None, 'control': 1000000}
    """
    return parse_starts(settings.get(POSITIONS, "").split(";"))


def parse_starts(given: Iterable[str]) -> Starts:
    """Read choices as people write them. Raises RestoreError."""
    found: dict[str, Micros | None] = {}
    for text in filter(None, map(str.strip, given)):
        uid, equals, where = text.rpartition("=")
        if not (uid.strip() and equals):
            msg = f"position must be source=earliest or source=TIME: got {text!r}"
            raise RestoreError(msg)
        found[uid.strip()] = _time(uid.strip(), where.strip())
    return found


def check_starts(starts: Starts, manifest: Manifest) -> None:
    """Refuse a position of what has none in the snapshot. Raises RestoreError."""
    known = sorted(entry.uid for entry in manifest.operators if entry.splits)
    for uid in sorted(starts.keys() - set(known)):
        msg = (
            f"position is chosen for {uid!r}, which is no source of the snapshot: it has "
            f"{', '.join(known) or 'none'}; name one of them"
        )
        raise RestoreError(msg)


def in_words(start: Micros | None, read_to: Micros) -> str:
    """What a choice means for the splits of a source; `read_to`: event time of the snapshot."""
    again = (
        "what windows in the state have counted already is counted again, and rows of windows that "
        "have closed are late"
    )
    if start is None:
        return f"begins at its earliest row: {again}"
    text = f"begins at {moment_text(start)}"
    if read_to == MIN_TIME:
        return f"{text}: what it had read before is not known; rows read twice are counted twice"
    if start > read_to:
        return f"{text}: event time from {moment_text(read_to)} to then is not read"
    return f"{text}: from there to {moment_text(read_to)} it reads again; {again}"


def _time(uid: str, where: str) -> Micros | None:
    if where == EARLIEST:
        return None
    try:
        return parse_moment(where, f"position of {uid!r}")
    except ConfigError as error:
        msg = f"{error}; or earliest"
        raise RestoreError(msg) from error
