"""The table of peers: whether an output is right, how fast, and how much faster ours.

A wrong output is shown as wrong, and has neither a speed nor a ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.peers.totals import Totals


@dataclass(frozen=True, slots=True)
class Score:
    """What one run took, and why it does not count."""

    who: str
    work: str
    rows: int
    seconds: float = 0.0
    cpu_s: float | None = None
    """Processor time, where it is known."""
    peak_mib: float = 0.0
    failure: str = ""
    """One sentence; empty when the output is right."""

    @property
    def rows_per_second(self) -> float | None:
        """None for a run that does not count."""
        return None if self.failure or not self.seconds else self.rows / self.seconds


def wrong(found: Totals, expected: Totals) -> str:
    """Say how the output differs: nothing when it is right."""
    if found == expected:
        return ""
    each = zip(Totals._fields, found, expected, strict=True)
    name, got, want = next(one for one in each if one[1] != one[2])
    return f"the output is wrong: {name} is {got:,} and should be {want:,}"


def ratio(ours: Score | None, peer: Score) -> float | None:
    """How many times the rows a second ours handles; None when one of them does not count."""
    if ours is None or ours.rows_per_second is None or peer.rows_per_second is None:
        return None
    return ours.rows_per_second / peer.rows_per_second


def heading() -> str:
    """The names of the columns."""
    return (
        f"{'':12}{'':22}{'rows':>12}{'rows/s':>13}{'ours/peer':>11}{'seconds':>9}{'cpu s':>8}"
        f"{'peak MiB':>10}"
    )


def line(score: Score, ours: Score | None) -> str:
    """A score as text; a failure takes the place of figures."""
    start = f"{score.work:12}{score.who:22}{score.rows:>12,}"
    speed = score.rows_per_second
    if speed is None:
        return f"{start}  {score.failure}"
    times = ratio(ours, score)
    shown = "-" if times is None or ours is score else f"{times:,.1f}"
    cpu_s = "-" if score.cpu_s is None else f"{score.cpu_s:.2f}"
    return (
        f"{start}{speed:>13,.0f}{shown:>11}{score.seconds:>9.2f}{cpu_s:>8}{score.peak_mib:>10,.0f}"
    )
