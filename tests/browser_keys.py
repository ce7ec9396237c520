"""Without a mouse: a thing is reached by Tab, and pressed."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

MOST_TABS = 80
FOCUSED = "node => node === document.activeElement"


def walk(page: Page, target: Locator) -> None:
    """Go there by Tab."""
    expect(target).to_be_visible()
    for _ in range(MOST_TABS):
        if target.evaluate(FOCUSED):
            return
        page.keyboard.press("Tab")
    expect(target).to_be_focused()


def press(page: Page, target: Locator, key: str = "Enter") -> None:
    """Go there by Tab, and press a key."""
    walk(page, target)
    page.keyboard.press(key)
