"""How wide a page and its tables are, at each width of a window."""

from __future__ import annotations

from playwright.sync_api import Page

WIDTHS = (400, 1024, 1440)


def too_wide(page: Page) -> list[str]:
    """What is wider than the window, or than the panel that it is in and that does not scroll."""
    found: list[str] = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(SETTLED)
        needed = page.evaluate("document.documentElement.scrollWidth")
        found += [f"{needed} px in a window of {width}"] if needed > width else []
        found += [f"{width}: {one}" for one in page.evaluate(BEYOND)]
    return found


SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
BEYOND = """() => {
    const scrolls = node => getComputedStyle(node).overflowX !== 'visible';
    const beyond = (node, panel) =>
        node.getBoundingClientRect().right - panel.getBoundingClientRect().right;
    return [...document.querySelectorAll('.panel table, .panel svg, .panel .row, .panel form')]
        .filter(node => node.getBoundingClientRect().width && !node.closest('.gr'))
        .map(node => [node, node.closest('.panel')])
        .filter(([node, panel]) => !scrolls(panel) && beyond(node, panel) > 1)
        .map(([node, panel]) =>
            `${node.tagName} ${node.id} ${node.className.baseVal ?? node.className} is `
            + `${Math.round(beyond(node, panel))} px beyond its panel`);
}"""
