r"""Line protocol: the text in which points arrive, read strictly.

    measurement[,tag=value…] field=value[,field=value…] [timestamp]

    \,  \=  \space   in names and tag values; any other backslash stands for itself
    "…"              string; \" and \\ inside; may hold line breaks
    1  -2.5e3        float          7i  int64          7u  unsigned, up to 2^63 - 1
    t true f false   boolean        #…  comment

Units    timestamps are nanoseconds since 1970 UTC after reading, whatever `precision` they came in.
Errors   a line that cannot be read is returned with its number and the reason; the others are kept.
Source   InfluxDB 2 line protocol reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

FieldValue = float | int | bool | str
Tags = tuple[tuple[str, str], ...]

NANOS_PER = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
MAX_INT = 2**63 - 1

# An escaped separator, a backslash that escapes nothing, or any other character: one way to read
# each text, so that a long bad line costs linear time.
_SERIES = re.compile(r"(?:\\[,= ]|\\(?![,= ])|[^\\ \n])+")
_NAME = re.compile(r"(?:\\[, ]|\\(?![, ])|[^\\, ])+")
_TAG = re.compile(
    r",((?:\\[,= ]|\\(?![,= ])|[^\\,= ])*)(=?)((?:\\[,= ]|\\(?![,= ])|[^\\,= ])*)",
)
_FIELD = re.compile(
    r"((?:\\[,= ]|\\(?![,= ])|[^\\,= \n])+)="
    r'(?:"((?:[^"\\]|\\.)*)"|([^,\s"]+))(,?)',
    re.DOTALL,
)
_TIME = re.compile(r" +(-?\d{1,20})(?=[ \r]*(?:\n|$))")
_END = re.compile(r"[ \r]*(?:\n|$)")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*(?:\n|$))+")
_INT = re.compile(r"([+-]?\d+)i")
_UNSIGNED = re.compile(r"(\d+)u")
_FLOAT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_ESCAPE = re.compile(r"\\([,= ])")
_NAME_ESCAPE = re.compile(r"\\([, ])")
_STRING_ESCAPE = re.compile(r'\\(["\\])')
_SPECIAL = re.compile(r"[,= ]")
_NAME_SPECIAL = re.compile(r"[, ]")
_QUOTED = re.compile(r'["\\]')
_BOOLEANS = dict.fromkeys(("t", "T", "true", "True", "TRUE"), True) | dict.fromkeys(
    ("f", "F", "false", "False", "FALSE"), False
)


@dataclass(frozen=True, slots=True)
class Point:
    """Some fields of one series at one instant; the same series and time again overwrites them."""

    measurement: str
    tags: Tags
    """Sorted by name."""
    fields: tuple[tuple[str, FieldValue], ...]
    time_ns: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line, or a point of it, that was not kept."""

    line: int
    """Counted from 1; 0 when it is not known."""
    reason: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}: {self.text!r}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a body held; `lines[i]` is the line of `points[i]`."""

    points: list[Point]
    lines: list[int]
    rejected: list[Rejected]


class _Unreadable(Exception):
    """Why a line cannot be read."""


def tags_of(pairs: Iterable[tuple[str, str]]) -> Tags:
    """Tags in the one order that makes equal sets equal."""
    return tuple(sorted(pairs))


def parse(text: str, *, now_ns: int, precision: str = "ns") -> Parsed:
    """Read every line; a line without a timestamp happened now."""
    scale = NANOS_PER[precision]
    known: dict[str, tuple[str, Tags]] = {}
    parsed = Parsed([], [], [])
    at, line, counted = 0, 1, 0
    while at < len(text):
        if blank := _BLANK.match(text, at):
            at = blank.end()
            continue
        line += text.count("\n", counted, at)
        counted = at
        try:
            point, at = _point(text, at, known, scale, now_ns)
            parsed.points.append(point)
            parsed.lines.append(line)
        except _Unreadable as problem:
            end = text.find("\n", at)
            bad = text[at : end if end >= 0 else len(text)]
            parsed.rejected.append(Rejected(line, str(problem), bad[:200]))
            at += len(bad) + 1
    return parsed


def written(point: Point) -> str:
    r"""A line, with its time in ns.

    >>> written(Point("my m", (("a", "x,y"),), (("f", 1.5), ("n", 2), ("s", 'q"')), 7))
    'my\\ m,a=x\\,y f=1.5,n=2i,s="q\\"" 7'
    """
    series = _NAME_SPECIAL.sub(r"\\\g<0>", point.measurement)
    for name, value in point.tags:
        series += f",{_escaped(name)}={_escaped(value)}"
    fields = ",".join(f"{_escaped(name)}={_written(value)}" for name, value in point.fields)
    return f"{series} {fields} {point.time_ns}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)


def _written(value: FieldValue) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value}i"
        case str():
            return '"' + _QUOTED.sub(r"\\\g<0>", value) + '"'
        case float():
            return repr(value)


def _point(
    text: str, at: int, known: dict[str, tuple[str, Tags]], scale: int, now_ns: int
) -> tuple[Point, int]:
    series = _SERIES.match(text, at)
    if series is None:
        msg = "it has no measurement"
        raise _Unreadable(msg)
    raw = series[0]
    if raw not in known:
        known[raw] = _series(raw)
    measurement, tags = known[raw]
    fields, at = _fields(text, series.end())
    time_ns = now_ns
    if stamp := _TIME.match(text, at):
        time_ns, at = int(stamp[1]) * scale, stamp.end()
        if not -MAX_INT <= time_ns <= MAX_INT:
            msg = f"timestamp {stamp[1]} is out of range for its precision"
            raise _Unreadable(msg)
    end = _END.match(text, at)
    if end is None:
        msg = "something stands after the fields that is not a timestamp"
        raise _Unreadable(msg)
    return Point(measurement, tags, fields, time_ns), end.end()


def _series(raw: str) -> tuple[str, Tags]:
    """Measurement and tags."""
    name = _NAME.match(raw)
    if name is None:
        msg = "it has no measurement"
        raise _Unreadable(msg)
    pairs: dict[str, str] = {}
    at = name.end()
    while at < len(raw):
        tag = _TAG.match(raw, at)
        if tag is None:
            msg = "a tag is not of the form name=value"
            raise _Unreadable(msg)
        key, value = _unescape(tag[1]), _unescape(tag[3])
        if not (key and tag[2] and value):
            msg = f"tag {key!r} needs a name, '=' and a value"
            raise _Unreadable(msg)
        if key in pairs:
            msg = f"tag {key!r} is there twice"
            raise _Unreadable(msg)
        pairs[key] = value
        at = tag.end()
    return _NAME_ESCAPE.sub(r"\1", name[0]), tags_of(pairs.items())


def _fields(text: str, at: int) -> tuple[tuple[tuple[str, FieldValue], ...], int]:
    """The fields after the series, and where they end."""
    fields: dict[str, FieldValue] = {}
    while at < len(text) and text[at] == " ":
        at += 1
    more = True
    while more:
        match = _FIELD.match(text, at)
        if match is None:
            what = "after the comma" if fields else "after the measurement and tags"
            msg = f"no field of the form name=value stands {what}"
            raise _Unreadable(msg)
        key = _unescape(match[1])
        fields[key] = (
            _STRING_ESCAPE.sub(r"\1", match[2]) if match[3] is None else _value(key, match[3])
        )
        at, more = match.end(), bool(match[4])
    return tuple(fields.items()), at


def _value(key: str, raw: str) -> FieldValue:
    """A number or a boolean."""
    if _FLOAT.fullmatch(raw):
        number = float(raw)
        if number in (float("inf"), float("-inf")):
            msg = f"field {key!r} does not fit a float: {raw}"
            raise _Unreadable(msg)
        return number
    if match := _INT.fullmatch(raw) or _UNSIGNED.fullmatch(raw):
        whole = int(match[1])
        if not -MAX_INT - 1 <= whole <= MAX_INT:
            msg = f"field {key!r} does not fit 64 bits: {raw}"
            raise _Unreadable(msg)
        return whole
    if raw in _BOOLEANS:
        return _BOOLEANS[raw]
    msg = f"field {key!r} is no number, boolean or quoted string: {raw[:60]}"
    raise _Unreadable(msg)


def _unescape(raw: str) -> str:
    return _ESCAPE.sub(r"\1", raw) if "\\" in raw else raw
