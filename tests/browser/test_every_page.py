"""Every page, opened once: axe finds nothing, and at no width does it scroll sideways.

opened at 400 px  →  1024  →  1440, axe in light  →  400, axe in dark
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from axe import EACH_ONCE, violations
from browser_pages import PAGES

pytestmark = pytest.mark.browser

SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(path: str, page: Page):
    page.set_viewport_size({"width": 400, "height": 900})
    page.goto(path)
    sideways = too_wide(page, 400) + too_wide(page, 1024) + too_wide(page, 1440)
    found = violations(page, EACH_ONCE)
    assert sideways + too_wide(page, 400) + found == []


def too_wide(page: Page, width: int) -> list[str]:
    """What is wrong at that width."""
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate(SETTLED)
    needed = page.evaluate("document.documentElement.scrollWidth")
    return [] if needed <= width else [f"{needed} px in a window of {width}"]
