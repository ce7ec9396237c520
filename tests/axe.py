"""axe-core in a page: what it finds, in both themes, wide and narrow."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Page

SCRIPT = Path(__file__).parents[1] / "dashboard/frontend/node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OF_COLOUR = ["color-contrast", "link-in-text-block"]
LOOKS = [
    ("light", 1440, {"type": "tag", "values": RULES}),
    ("dark", 1440, {"type": "rule", "values": OF_COLOUR}),
    ("dark", 400, {"type": "rule", "values": OF_COLOUR}),
    ("light", 400, {"type": "tag", "values": RULES}),
]
"""Both themes, wide and narrow; a theme changes colours and nothing else."""


def violations(page: Page) -> list[str]:
    """What axe says of the page as it stands, in each look."""
    page.emulate_media(reduced_motion="reduce")  # a colour on its way to another is neither
    if not page.evaluate("'axe' in window"):
        page.evaluate(_script())
    found: list[str] = []
    for theme, width, rules in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(SETTLE, theme)
        found += [f"{theme} {width}: {one}" for one in page.evaluate(RUN, rules)]
    return found


SETTLE = """async theme => {
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
def _script() -> str:
    """The library, from the front end's packages."""
    if not SCRIPT.exists():
        pytest.fail("axe-core is missing: run scripts/frontend")
    return SCRIPT.read_text("utf-8")
