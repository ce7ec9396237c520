"""Which savepoints are kept, and why: a pure decision about the savepoints of one job.

    candidates, rules, now ─decide─▶ a Verdict with a reason for each, newest first

What is pinned, needed or the last good one is kept before any rule is asked. An expiry decides for
its savepoint alone. Of the rest each rule keeps some, and what no rule keeps is to be deleted; with
no rule nothing is.

Guarantee   More rules, or larger numbers, never delete more. What cannot be read, or was imported,
            no rule deletes. Days, weeks and months that have no savepoint do not count: of a job
            that rests nothing is deleted by the calendar alone, but for `keep_days`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo

AUTOMATIC = frozenset({"scheduled", "stop", "upgrade", "before_replay"})
"""Origins that rules are for; "manual" too when they say so, "imported" never."""

_MONTHS = "January February March April May June July August September October November December"
MONTHS = tuple(_MONTHS.split())


@dataclass(frozen=True, slots=True)
class Rules:
    """What to keep; None is no rule."""

    keep_last: int | None = None
    keep_days: int | None = None
    daily: int | None = None
    weekly: int | None = None
    monthly: int | None = None
    zone: tzinfo = UTC
    by_hand: bool = False

    @property
    def are_none(self) -> bool:
        """Whether nothing is ever deleted."""
        given = (self.keep_last, self.keep_days, self.daily, self.weekly, self.monthly)
        return all(number is None for number in given)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a decision looks at in one savepoint."""

    id: int
    taken_at: datetime
    origin: str = "scheduled"
    pinned: bool = False
    expires_at: datetime | None = None
    verdict: str = ""
    missing: bool = False
    needs: tuple[str, ...] = ()
    """Who needs it, a sentence each."""

    @property
    def is_usable(self) -> bool:
        """Whether a job could start from it, as far as is known."""
        return self.verdict != "damaged" and not self.missing


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one savepoint."""

    id: int
    keep: bool
    reason: str
    by_rule: bool = field(default=False, compare=False)
    """Whether a rule decided: what a person marked stays marked whatever rules say."""


def decide(candidates: Sequence[Candidate], rules: Rules, now: datetime) -> tuple[Verdict, ...]:
    """A verdict for each, newest first."""
    ordered = sorted(candidates, key=lambda one: (one.taken_at, one.id), reverse=True)
    good = last_good(ordered)
    slots = dict(reversed([*_slots([one for one in ordered if _counts(one, rules)], rules, now)]))
    return tuple(_verdict(one, rules, now, good.get(one.id, ""), slots) for one in ordered)


def last_good(candidates: Iterable[Candidate]) -> dict[int, str]:
    """The newest that is not known to be bad, and the newest that is known to be whole."""
    ordered = sorted(candidates, key=lambda one: (one.taken_at, one.id), reverse=True)
    usable = [one for one in ordered if one.is_usable and one.verdict != "unreadable"]
    whole = [one for one in usable if one.verdict == "whole"]
    found = {one.id: "the last one that is known to be whole" for one in whole[:1]}
    return found | {one.id: "the last good one" for one in usable[:1]}


def _counts(one: Candidate, rules: Rules) -> bool:
    """A damaged one must not take the place of the newest good one of its week."""
    return _subject(one, rules) and one.is_usable


def _subject(one: Candidate, rules: Rules) -> bool:
    return one.origin in AUTOMATIC or (rules.by_hand and one.origin == "manual")


def _verdict(
    one: Candidate, rules: Rules, now: datetime, good: str, slots: dict[int, str]
) -> Verdict:
    if one.pinned:
        return Verdict(one.id, True, "pinned")
    if one.needs:
        return Verdict(one.id, True, one.needs[0])
    if good:
        return Verdict(one.id, True, good)
    if one.expires_at is not None:
        keep = one.expires_at > now
        word = "expires" if keep else "expired"
        return Verdict(one.id, keep, f"{word} on {_day(one.expires_at, rules)}", by_rule=True)
    if rules.are_none:
        return Verdict(one.id, True, "there are no rules", by_rule=True)
    if not _subject(one, rules):
        how = "imported" if one.origin == "imported" else "taken by hand"
        return Verdict(one.id, True, f"{how}: the rules are not for it", by_rule=True)
    if one.verdict == "unreadable":
        return Verdict(one.id, True, "cannot be read: nobody knows what is in it", by_rule=True)
    if one.id in slots:
        return Verdict(one.id, True, slots[one.id], by_rule=True)
    bad = "" if one.is_usable else "damaged or gone, and "
    return Verdict(one.id, False, f"{bad}no rule keeps it", by_rule=True)


def _slots(ordered: Sequence[Candidate], rules: Rules, now: datetime) -> Iterator[tuple[int, str]]:
    """Who is kept by which rule, the rule that is told first."""
    for one in ordered[: rules.keep_last or 0]:
        yield one.id, f"one of the newest {rules.keep_last}"
    for one in ordered:
        if rules.keep_days is not None and now - one.taken_at < timedelta(days=rules.keep_days):
            yield one.id, f"younger than {rules.keep_days} days"
    yield from _newest_of(ordered, rules.daily, lambda one: _day(one.taken_at, rules))
    yield from _newest_of(ordered, rules.weekly, lambda one: _week(one.taken_at, rules))
    yield from _newest_of(ordered, rules.monthly, lambda one: _month(one.taken_at, rules))


def _newest_of(
    ordered: Sequence[Candidate], most: int | None, period: Callable[[Candidate], str]
) -> Iterator[tuple[int, str]]:
    newest: dict[str, int] = {}
    for one in ordered:
        newest.setdefault(period(one), one.id)
    for name, id_ in list(newest.items())[: most or 0]:
        yield id_, f"newest of {name}"


def _day(moment: datetime, rules: Rules) -> str:
    local = moment.astimezone(rules.zone)
    return f"{local.day} {MONTHS[local.month - 1][:3]} {local.year}"


def _week(moment: datetime, rules: Rules) -> str:
    year, week, _ = moment.astimezone(rules.zone).isocalendar()
    return f"week {week} of {year}"


def _month(moment: datetime, rules: Rules) -> str:
    local = moment.astimezone(rules.zone)
    return f"{MONTHS[local.month - 1]} {local.year}"
