"""Accessibility of what opens over a page: axe finds nothing, in both themes, wide and narrow."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from axe import violations

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("dialog", ["take", "stop"])
def test_axe_finds_nothing_in_an_open_dialog(dialog: str, page: Page):
    page.goto("/jobs/flights/")
    page.locator(f"[data-open={dialog}]").first.click()
    assert violations(page) == []


def test_axe_finds_nothing_in_the_palette_and_in_the_list_of_keys(page: Page):
    page.goto("/jobs/flights/")
    page.keyboard.press("Control+k")
    expect(page.locator("#jl [role=option]").first).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keyboard")
    assert violations(page) == []
