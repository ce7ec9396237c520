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
OF_A_REPLAY = {
    "replay": "/replays/1/",
    "wizard-start": "/replays/new/?job=revenue",
    "wizard-restore": "/replays/new/?job=revenue&step=restore&sp={oldest}",
}
WIDTHS = {1440: "", 1024: "-1024"}
MOST_THAT_DIFFERS = 0.02
"""Of the small picture; another version of the browser moves a few lines by a pixel."""
TICKS = 3


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    """A seeded server in which no second passes."""
    server = seeded_process.start(tmp_path_factory.mktemp("still"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def replaying(still: SeededServer):
    """The same a few seconds later, with a replay that has begun: for the tests at the end."""
    for told in ("revenue", "pace 1000", "replay", *["tick"] * TICKS, "differ"):
        still.tell(told)
    return still


@pytest.mark.parametrize("name", PAGES)
def test_a_page_looks_as_it_did(name: str, still: SeededServer, chromium: Browser):
    page = still.window(chromium).new_page()
    assert differing(page, name, PAGES[name], START_MS) == []
    page.context.close()


@pytest.mark.parametrize("name", OF_A_REPLAY)
def test_a_replays_page_looks_as_it_did(name: str, replaying: SeededServer, chromium: Browser):
    page = replaying.window(chromium).new_page()
    page.goto("/replays/new/?job=revenue")
    oldest = page.locator("input[name=sp]").last.input_value()
    address = OF_A_REPLAY[name].format(oldest=oldest)
    assert differing(page, name, address, START_MS + 1_000 * TICKS) == []
    page.context.close()


def differing(page: Page, name: str, address: str, at_ms: int) -> list[str]:
    """In which looks it is not as it was."""
    page.clock.set_fixed_time(at_ms / 1000)
    page.goto(address)
    settle(page)
    pictures = {}
    for theme in ("light", "dark"):
        page.evaluate(WEAR, theme)
        for width, suffix in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(A_FEW_FRAMES)
            pictures[f"{name}{suffix}-{theme}"] = page.screenshot()
    page.goto("about:blank")  # where no policy keeps pictures out
    return [look for look, picture in pictures.items() if not as_it_was(page, look, picture)]


def as_it_was(page: Page, look: str, picture: bytes) -> bool:
    """Whether a picture is as the one that is kept."""
    small, kept = shrink(page, picture), LOOKS / f"{look}.png"
    if WRITE:
        LOOKS.mkdir(exist_ok=True)
        kept.write_bytes(small)
    pair = [encoded(small), encoded(kept.read_bytes())]
    return bool(page.evaluate(COMPARE, pair) < MOST_THAT_DIFFERS)


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
    if page.locator("#slope").count():
        expect(page.locator("#slope svg")).to_be_visible()
    page.evaluate("document.fonts.ready")


def shrink(page: Page, picture: bytes) -> bytes:
    """The picture at a quarter of its width and height."""
    return base64.b64decode(page.evaluate(SHRINK, encoded(picture)).partition(",")[2])


def encoded(picture: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(picture).decode()


WEAR = """theme => {
    document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new Event('hw:theme'));
}"""
A_FEW_FRAMES = """async () => {
    for (let frame = 0; frame < 5; frame++) await new Promise(requestAnimationFrame);
}"""
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
