"""Small pictures as SVG, made on the server; colours come from classes, sizes from attributes.

bars([0, 3, 1], 120, 24)  ->  <svg class="bars" viewBox="0 0 120 24"><rect …/></svg>
"""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from dashboard.fmt import fixed


def bars(counts: Sequence[float], width: int, height: int, tone: str = "crit") -> SafeString:
    """One bar per count, the largest as high as the picture; what is there is at least visible."""
    step = width / max(1, len(counts))
    top = max(counts, default=0) or 1
    rects = (
        (tone, fixed(at * step, 1), fixed(height - tall, 1), fixed(max(1.0, step - 1), 1), tall)
        for at, count in enumerate(counts)
        if count > 0 and (tall := round(max(2.0, height * count / top), 1))
    )
    shape = '<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>'
    return format_html(
        '<svg class="bars" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">'
        "{}</svg>",
        width,
        height,
        format_html_join("", shape, rects),
    )
