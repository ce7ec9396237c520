"""What every page does for every eye: times in full, still spinners, forced colours, plain text."""

from __future__ import annotations

import json
import re
from datetime import datetime
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browser_socket import open_live, say
from hostile import MARKUP
from seeded_hostile import OPS
from seeded_process import SeededServer

pytestmark = pytest.mark.browser

STATES = json.loads((Path(__file__).parents[2] / "dashboard/states.json").read_text("utf-8"))
TIMES = "time[data-as=stamp], time[data-as=second]"
SHOWN = "times => times.map(time => time.textContent)"


@pytest.fixture
def page(seeded_page: Page) -> Page:
    return seeded_page


def test_a_time_says_utc_local_and_epoch_and_the_switch_reaches_every_one(
    seeded: SeededServer, chromium: Browser
):
    context = seeded.window(chromium, timezone="Asia/Tokyo")
    page = context.new_page()
    open_live(page, "/jobs/orders/checkpoints/?id=1-18320")
    times = page.locator(TIMES)
    first = times.first
    first.hover()
    page.evaluate("dispatchEvent(new Event('scroll'))")  # as when the hover scrolled it into view
    tip = page.get_by_role("tooltip")
    expect(tip.locator(".k")).to_have_text(["UTC", "Local +9", "Epoch ms"])
    values = tip.locator("div > span:last-child").all_inner_texts()
    shown = datetime.fromisoformat(first.get_attribute("datetime"))
    assert values[0] == f"{shown:%Y-%m-%d %H:%M:%S}"
    assert int(values[2]) == round(shown.timestamp() * 1_000)
    utc = times.evaluate_all(SHOWN)
    page.locator("[data-tz]").click()
    expect(first).not_to_have_text(utc[0])
    assert all(was != now for was, now in zip(utc, times.evaluate_all(SHOWN), strict=True))
    context.close()


def test_a_page_goes_by_the_servers_clock_also_before_its_socket_speaks(page: Page):
    page.route_web_socket("**/*", lambda socket: None)  # it opens, and says nothing
    page.goto(
        "/jobs/orders/checkpoints/?id=1-18320"
    )  # long ago for the browser, today for the server
    time = page.locator(TIMES).first
    utc = time.inner_text()
    page.locator("[data-tz]").click()
    page.locator("[data-tz]").click()
    expect(time).to_have_text(utc)
    assert re.fullmatch(r"\d\d:\d\d", utc)


def test_nothing_turns_where_motion_is_not_wanted(page: Page):
    open_live(page, "/jobs/")
    draw_states(page, ["RESTARTING"])
    turning = "() => document.querySelector('#states .g').getAnimations().length"
    assert page.evaluate(turning) == 0
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(turning) == 1


def test_states_differ_in_forced_colours(page: Page):
    open_live(page, "/jobs/")
    glyphs = {one["glyph"]: name for name, one in STATES.items()}
    draw_states(page, list(glyphs.values()))
    page.emulate_media(forced_colors="active")
    drawn = {one: page.locator(f"#states .g:has([href='#g-{one}'])").screenshot() for one in glyphs}
    assert len(drawn) >= 8
    assert [pair for pair in combinations(drawn, 2) if drawn[pair[0]] == drawn[pair[1]]] == []


def draw_states(page: Page, names: list[str]) -> None:
    """Put the badges of the states above the page."""
    page.evaluate(
        """names => {
            const host = document.createElement('div');
            host.id = 'states';
            host.innerHTML = names.map(headwater.fmt.badge).join(' ');
            document.querySelector('#main').prepend(host);
        }""",
        names,
    )


def test_names_with_markup_are_text_in_pages_tooltips_toasts_and_the_palette(
    page: Page, seeded: SeededServer
):
    seeded.tell("hostile")
    for address in ("exceptions/", "savepoints/", "checkpoints/", f"op/{OPS[0].id}/", ""):
        open_live(page, f"/jobs/hostile/{address}")
        assert nothing_is_markup(page)
    expect(page.locator("#happened, .note").first).to_contain_text("onerror=alert(1)")
    node = page.locator("#graph .nd").first
    expect(node).to_contain_text("<img src=x")
    node.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("<svg onload=alert(2)>")
    page.keyboard.press("Control+k")
    page.keyboard.type("onerror")
    expect(page.get_by_role("option").first).to_contain_text("<img src=x onerror=alert(1)>")
    assert nothing_is_markup(page)


def test_a_toast_shows_markup_as_text(member_page: Page):
    page = member_page
    open_live(page, "/jobs/many/")
    page.get_by_role("button", name="Savepoint", exact=True).click()
    page.locator("dialog#take").get_by_role("button", name="Take savepoint").click()
    toast = page.locator(".toast")
    expect(toast).to_be_visible()
    expect(page.locator("html")).to_have_attribute("data-heard", re.compile("op[.]"))
    topic = page.evaluate("Object.keys(heard).find(topic => topic.startsWith('op.'))")
    told = {"k": "op", "t": topic, "state": "failed", "title": MARKUP, "error": MARKUP}
    say(page, told)
    expect(toast.locator("b")).to_have_text(MARKUP)
    expect(toast.locator("p")).to_contain_text("<img src=x onerror=alert(1)>")
    assert nothing_is_markup(page)


def nothing_is_markup(page: Page) -> bool:
    """Whether no text has become an element or a handler."""
    return page.locator("img, [onerror], [onload]").count() == 0
