"""Plain text tables for people."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN_BYTES = 8
"""No more of a binary value is shown: what aggregates keep may be long, and tells nobody much."""


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as their widest cell; numbers to the right.

    >>> print(table(("name", "rows"), [("a", 1), ("bb", 10)]))
    name  rows
    a        1
    bb      10
    """
    texts = [[_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *texts, strict=True)]
    right = [
        bool(rows) and all(isinstance(row[at], int) for row in rows) for at in range(len(head))
    ]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in [list(head), *texts]
    )


def _text(cell: object) -> str:
    if isinstance(cell, bytes) and len(cell) > SHOWN_BYTES:
        return f"{cell[:SHOWN_BYTES]!r}… ({len(cell)} bytes)"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
