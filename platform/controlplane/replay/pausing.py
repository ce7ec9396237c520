"""How long no version will run when a replay is promoted: as long as it took before, or not known.

promotions of the job before ─▶ what they took, measured
none: its last upgrade       ─▶ how long that took, from the wish on; the exchange of outputs is
not in it
neither                      ─▶ not known
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.operations.models import Operation
from controlplane.replay.catching_up import length
from controlplane.replay.models import Replay

LAST = 5
"""Promotions that are looked at: earlier ones were of other states and machines."""


@dataclass(frozen=True, slots=True)
class Pause:
    """What is expected; seconds, None is not known."""

    low_s: float | None
    high_s: float | None
    source: str
    """What says so, in words."""

    @property
    def text(self) -> str:
        """All of it."""
        if self.low_s is None or self.high_s is None:
            return f"not known: {self.source}"
        low, high = length(self.low_s), length(self.high_s)
        return f"{low if low == high else f'{low} to {high}'}, {self.source}"


def expected_pause(replay: Replay) -> Pause:
    """Of this replay's promotion; of one that was promoted, what was expected before."""
    earlier = replay.job.replays.exclude(stood_still_ms=None).exclude(pk=replay.pk)
    if replay.promoted_at is not None:
        earlier = earlier.filter(promoted_at__lt=replay.promoted_at)
    newest = earlier.order_by("-promoted_at").values_list("stood_still_ms", flat=True)[:LAST]
    took = [one / 1000 for one in newest if one is not None]
    if took:
        many = f"the last {len(took)} promotions" if len(took) > 1 else "the last promotion"
        return Pause(min(took), max(took), f"as {many} of {replay.job.name} took")
    return _from_upgrades(replay)


def _from_upgrades(replay: Replay) -> Pause:
    upgrades = replay.job.operations.filter(kind="upgrade", state=Operation.State.SUCCEEDED)
    if replay.promoted_at is not None:
        upgrades = upgrades.filter(created_at__lt=replay.promoted_at)
    last = upgrades.exclude(ended_at=None).order_by("-created_at").first()
    if last is None or last.ended_at is None:
        why = f"nothing of {replay.job.name} was promoted or upgraded before"
        return Pause(None, None, why)
    took = max(0.0, (last.ended_at - last.created_at).total_seconds())
    why = f"as the last upgrade of {replay.job.name} took; exchanging outputs comes on top"
    return Pause(took, took, why)
