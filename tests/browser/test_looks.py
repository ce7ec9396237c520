"""How the pages look: small pictures of them beside those that are kept in `looks/`.

A picture is kept at a quarter of its size: the edges of letters do not count. After a wanted
change:  HEADWATER_LOOKS=write python -m pytest -m browser tests/browser/test_looks.py
"""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import seeded_process
from seeded_jobs import START_MS
from seeded_process import SeededServer

pytestmark = pytest.mark.browser

LOOKS = Path(__file__).with_name("looks")
WRITE = os.environ.get("HEADWATER_LOOKS") == "write"
PAGES = {
    "fleet": "/jobs/",
    "job": "/jobs/orders/",
    "checkpoints": "/jobs/orders/checkpoints/?id=1-18348",
    "savepoints": "/jobs/orders/savepoints/",
}
MOST_THAT_DIFFERS = 0.02
"""Of the small picture; another version of the browser moves a few lines by a pixel."""


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    """A seeded server in which no second passes."""
    server = seeded_process.start(tmp_path_factory.mktemp("still"))
    yield server
    server.stop()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_looks_as_it_did(name: str, theme: str, still: SeededServer, chromium: Browser):
    context = still.window(chromium)
    page = context.new_page()
    page.clock.set_fixed_time(START_MS / 1000)
    page.goto(f"{PAGES[name]}{'&' if '?' in PAGES[name] else '?'}theme={theme}")
    settle(page)
    picture = page.screenshot()
    page.goto("about:blank")  # where no policy keeps pictures out
    small, kept = shrink(page, picture), LOOKS / f"{name}-{theme}.png"
    if WRITE:
        LOOKS.mkdir(exist_ok=True)
        kept.write_bytes(small)
    differing = page.evaluate(COMPARE, [encoded(small), encoded(kept.read_bytes())])
    context.close()
    assert differing < MOST_THAT_DIFFERS


def settle(page: Page) -> None:
    """Until everything is there that comes by itself."""
    expect(page.locator("[data-live-pill]")).to_have_attribute("data-s", "live")
    if page.locator("#graph").count():
        expect(page.locator("#graph .nd").first).to_be_visible()
        expect(page.locator("#insp .dist svg")).to_be_visible()
        expect(page.locator("#charts canvas")).to_have_count(4)
        expect(page.locator("#history path")).not_to_have_count(0)
    if page.locator("[data-changes]").count():
        expect(page.locator("[data-changes] .ev").first).to_be_visible()
    page.evaluate("document.fonts.ready")


def shrink(page: Page, picture: bytes) -> bytes:
    """The picture at a quarter of its width and height."""
    return base64.b64decode(page.evaluate(SHRINK, encoded(picture)).partition(",")[2])


def encoded(picture: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(picture).decode()


SHRINK = """async source => {
    const image = await createImageBitmap(await (await fetch(source)).blob());
    let { width, height } = image, from = image;
    for (let halving = 0; halving < 2; halving++) {
        width = Math.round(width / 2); height = Math.round(height / 2);
        const canvas = Object.assign(document.createElement('canvas'), { width, height });
        canvas.getContext('2d').drawImage(from, 0, 0, width, height);
        from = canvas;
    }
    return from.toDataURL('image/png');
}"""
COMPARE = """async pair => {
    const pixels = await Promise.all(pair.map(async source => {
        const image = await createImageBitmap(await (await fetch(source)).blob());
        const canvas = Object.assign(document.createElement('canvas'),
            { width: image.width, height: image.height });
        const context = canvas.getContext('2d', { willReadFrequently: true });
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height);
    }));
    const [now, then] = pixels;
    if (now.width !== then.width || now.height !== then.height) return 1;
    let differing = 0;
    for (let at = 0; at < now.data.length; at += 4) {
        const away = [0, 1, 2].map(c => Math.abs(now.data[at + c] - then.data[at + c]));
        differing += Math.max(...away) > 24;
    }
    return differing / (now.width * now.height);
}"""
