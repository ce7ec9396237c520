"""Accessibility: axe finds nothing on any page, in both themes, wide and narrow."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser_pages import PAGES

pytestmark = pytest.mark.browser

AXE = (
    Path(__file__).parents[2]
    / "dashboard"
    / "frontend"
    / "node_modules"
    / "axe-core"
    / "axe.min.js"
)
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOOKS = [(theme, width) for width in (1440, 400) for theme in ("light", "dark")]
DIALOGS = ("take", "stop")


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(path: str, page: Page):
    page.goto(path)
    ready(page)
    assert violations(page) == []


@pytest.mark.parametrize("dialog", DIALOGS)
def test_axe_finds_nothing_in_an_open_dialog(dialog: str, page: Page):
    page.goto("/jobs/flights/")
    ready(page)
    page.locator(f"[data-open={dialog}]").first.click()
    assert violations(page) == []


def test_axe_finds_nothing_in_the_palette_and_in_the_list_of_keys(page: Page):
    page.goto("/jobs/flights/")
    ready(page)
    page.keyboard.press("Control+k")
    expect(page.locator("#jl [role=option]").first).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keyboard")
    assert violations(page) == []


def ready(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")  # a colour on its way to another is neither
    page.wait_for_function("window.headwater")
    page.evaluate(script())


def violations(page: Page) -> list[str]:
    """What axe says in each look; colours are compared when the theme has settled."""
    found: list[str] = []
    for theme, width in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(LOOK, theme)
        found += [f"{theme} {width}: {one}" for one in page.evaluate(RUN, RULES)]
    return found


LOOK = """async theme => {
    document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new Event('hw:theme'));
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
RUN = """async rules => {
    const said = one => one.any[0]?.message ?? one.all[0]?.message ?? one.none[0]?.message ?? '';
    const { violations } = await axe.run(document, { runOnly: rules, resultTypes: ['violations'] });
    return violations.map(v => `${v.id}: ${v.nodes.slice(0, 3)
        .map(n => `${n.target.join(' ')} (${said(n).slice(0, 160)})`).join('; ')}`);
}"""


@cache
def script() -> Any:
    """The library, from the front end's packages."""
    if not AXE.exists():
        pytest.fail("axe-core is missing: run `npm ci` in dashboard/frontend")
    return AXE.read_text("utf-8")
