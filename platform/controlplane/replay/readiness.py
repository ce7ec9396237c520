"""Whether a replay can be promoted, or rolled back: one answer for whoever asks.

    page, API, command line ────────┐
                                    ├─▶ Answer ──< Condition: met, open, or to be known
    an operation before it begins ──┘

Guarantee   what the page shows as possible is what the operation is refused by, and nothing else
            but what changes meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from controlplane.access.errors import Refused
from controlplane.jobs.health import live_run
from controlplane.replay.catching_up import back_text, length, rule_text
from controlplane.replay.compared import Comparison, comparison_of
from controlplane.replay.models import OPEN as GOES_ON
from controlplane.replay.models import Replay
from controlplane.replay.tuning import tuning_of
from controlplane.snapshots.usable import why_unusable

MET, OPEN, WARN = "met", "open", "warn"
"""States of a condition; one that warns hinders nothing."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that has to hold, or to be known, before."""

    title: str
    state: str
    text: str
    """How it stands."""
    todo: str = ""
    """What would meet it; empty when it is met, or nothing will."""
    code: str = "conflict"
    """Of the refusal while it is open."""

    @property
    def sentence(self) -> str:
        """How it stands, and what would meet it."""
        return f"{self.text}; {self.todo}" if self.todo else self.text


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether something can be done with a replay."""

    subject: str
    done: str
    """What would be done, as a participle: promoted."""
    conditions: tuple[Condition, ...]

    @property
    def open(self) -> tuple[Condition, ...]:
        """Those that are not met."""
        return tuple(one for one in self.conditions if one.state == OPEN)

    @property
    def met(self) -> int:
        """How many hinder nothing."""
        return len(self.conditions) - len(self.open)

    @property
    def ok(self) -> bool:
        """Whether nothing hinders it."""
        return not self.open

    @property
    def why_not(self) -> str:
        """Why it cannot be done and what would enable it, in one sentence; empty when it can."""
        if self.ok:
            return ""
        return f"{self.subject} cannot be {self.done}: {self.open[0].sentence}"

    def require(self) -> None:
        """Refuse what cannot be done. Raises Refused."""
        if not self.ok:
            raise Refused(409, self.open[0].code, self.why_not)


def promotion(replay: Replay, comparison: Comparison | None = None) -> Answer:
    """Whether its version can take the place of the live one."""
    found = comparison or comparison_of(replay)
    conditions = (
        _takes_over(replay),
        _restored(replay),
        _caught_up(replay),
        _beside_a_live_run(replay),
        _reviewed(found),
        _exchangeable(found),
        _goes_back(replay),
    )
    return Answer(str(replay), "promoted", conditions)


def rollback(replay: Replay) -> Answer:
    """Whether the version before can take its place again."""
    is_promoted = replay.status == Replay.Status.PROMOTED
    status = f"it is {replay.get_status_display().lower()}"
    conditions = (
        Condition("Promoted", MET if is_promoted else OPEN, status),
        *(
            (_in_time(replay), _still_its_run(replay), _old_savepoint(replay))
            if is_promoted
            else ()
        ),
    )
    return Answer(str(replay), "rolled back", conditions)


def _takes_over(replay: Replay) -> Condition:
    title, again = "Can take over", "start another replay"
    if replay.until is not None:
        return Condition(title, OPEN, "it ends by itself", f"{again}, without an end")
    if replay.discards:
        return Condition(title, OPEN, "it writes nothing: a dry run", f"{again}, with outputs")
    return Condition(title, MET, "it has no end, and writes beside the targets")


def _restored(replay: Replay) -> Condition:
    text = f"from savepoint {replay.savepoint_id}"
    if replay.started_at or replay.status not in (Replay.Status.PLANNED, Replay.Status.STARTING):
        return Condition("State restored", MET, text)
    return Condition("State restored", OPEN, f"not yet {text}", "wait until it has started")


def _caught_up(replay: Replay) -> Condition:
    title = "Caught up"
    if replay.status != Replay.Status.CAUGHT_UP:
        text = f"it is {replay.get_status_display().lower()}"
        todo = f"wait until it has caught up: {rule_text(tuning_of(replay))}"
        return Condition(title, OPEN, text, todo if replay.status in GOES_ON else "")
    if replay.level_since is None and replay.fell_behind_at is not None:
        text = f"but behind again since {replay.fell_behind_at:%d %b %H:%M} UTC"
        return Condition(title, WARN, f"{text}: {replay.fell_behind}")
    since = f"; level since {replay.level_since:%d %b %H:%M} UTC" if replay.level_since else ""
    return Condition(title, MET, f"beside the live job{since}")


def _beside_a_live_run(replay: Replay) -> Condition:
    run = live_run(replay.job)
    if run is not None:
        return Condition("Live version runs", MET, f"version {run.version.number}")
    text = f"job {replay.job.name} is not running: there is nothing to take the place of"
    return Condition("Live version runs", OPEN, text, "start it first", "not_running")


def _reviewed(comparison: Comparison) -> Condition:
    title, kinds, waiting = "Differences reviewed", comparison.kinds, comparison.open_differences
    if waiting:
        text = (
            f"{waiting} kinds of differences are not accepted"
            if waiting > 1
            else "1 kind of differences is not accepted"
        )
        todo = "accept those that the new version intends"
        return Condition(title, OPEN, text, todo, "differences")
    if not comparison.has_begun:
        return Condition(title, WARN, "nothing has been compared yet")
    return Condition(title, MET, f"{kinds} of {kinds} accepted" if kinds else "there are none")


def _exchangeable(comparison: Comparison) -> Condition:
    title, left = "Outputs can be exchanged", comparison.left_alone
    if not left:
        return Condition(title, MET, "all of them")
    names = ", ".join(output.name for output in left)
    return Condition(title, WARN, f"not {names}: the old rows stay there")


def _goes_back(replay: Replay) -> Condition:
    text = "the old version stops with a savepoint first"
    if replay.back_days:
        return Condition("Roll back", MET, f"{text}, kept for {back_text(tuning_of(replay))}")
    return Condition("Roll back", WARN, "it cannot be rolled back: its time for that is 0 days")


def _still_its_run(replay: Replay) -> Condition:
    job, run = replay.job, live_run(replay.job)
    if run is None:
        text = f"job {job.name} is not running: there is nothing to roll back"
        return Condition("Promoted run is live", OPEN, text, "start it first", "not_running")
    if run.pk != replay.new_run_id:
        text = f"{job.name} was started again since it was promoted"
        todo = "start the old version from a savepoint instead"
        return Condition("Promoted run is live", OPEN, text, todo, "changed")
    return Condition("Promoted run is live", MET, f"version {run.version.number}")


def _old_savepoint(replay: Replay) -> Condition:
    title, savepoint = "Old version's savepoint", replay.old_savepoint
    if savepoint is None:
        return Condition(title, OPEN, "the old version has left no savepoint", code="savepoint")
    if reason := why_unusable(savepoint):
        text = f"savepoint {savepoint.pk} cannot be used: {reason}"
        return Condition(title, OPEN, text, code="savepoint")
    return Condition(title, MET, f"savepoint {savepoint.pk} can be read")


def _in_time(replay: Replay) -> Condition:
    title, until, now = "In time", replay.back_until, timezone.now()
    if until is None or now < until:
        text = f"{length((until - now).total_seconds())} are left" if until else "not promoted"
        return Condition(title, MET, f"{text}, until {until:%d %b %Y %H:%M} UTC" if until else text)
    text = f"its {back_text(tuning_of(replay))} for that ended on {until:%d %b %Y %H:%M} UTC"
    todo = "start the old version from a savepoint instead"
    return Condition(title, OPEN, text, todo, "late")
