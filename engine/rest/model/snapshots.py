"""Looks into snapshots: what may be asked, within which limits, and where long ones stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_ROWS = 10_000
"""Rows of one answer; who wants all of a state reads its Parquet files."""

MAX_EXAMPLES = 100
"""Rows of each state that a comparison may show."""


@dataclass(frozen=True, slots=True)
class InspectionStatus:
    """Where a verification or a comparison stands."""

    finished: bool
    done: int = 0
    total: int = 0
    """Bytes of a verification, rows of a comparison; 0 until it has begun."""
    result: Mapping[str, Any] | None = None
    """A Verification or a Difference as JSON."""
    failure: str | None = None
    """One sentence, when there is no result."""
