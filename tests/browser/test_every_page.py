"""Every page, opened once: it is light, axe finds nothing, and nothing is wider than its place.

what came over the line  →  400 px  →  1024  →  1440  →  axe in light and dark, at 1440 and at 400
"""

from __future__ import annotations

import gzip

import pytest
from playwright.sync_api import Page

from axe import violations
from browser_pages import PAGES
from browser_widths import too_wide

pytestmark = pytest.mark.browser


FIRST_PAGE_BYTES = 140 * 1024
"""Scripts, styles and fonts, packed, when nothing is kept from another page."""
WEIGHED: dict[str, int] = {}
LEAST_FILES = 4
"""Style, font and scripts: fewer, and the answers were not seen."""


@pytest.mark.parametrize("path", PAGES)
def test_it_is_light_axe_finds_nothing_and_nothing_is_wider_than_its_place(path: str, page: Page):
    page.set_viewport_size({"width": 400, "height": 900})
    asked: set[str] = set()
    page.on("response", lambda answer: asked.add(answer.url))
    page.goto(path)
    page.evaluate("document.fonts.ready")
    files = [url for url in asked if "/static/" in url]
    assert len(files) >= LEAST_FILES
    assert sum(weight(page, url) for url in files) < FIRST_PAGE_BYTES
    assert too_wide(page) + violations(page) == []


def weight(page: Page, url: str) -> int:
    """Bytes on the line: a font is packed already."""
    if url not in WEIGHED:
        body = page.request.get(url).body()
        WEIGHED[url] = len(body) if url.endswith(".woff2") else len(gzip.compress(body, 9))
    return WEIGHED[url]
