"""A stretch of time is dragged over, kept in the address, and read as a table."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from axe import violations
from seeded_jobs import START_MS

pytestmark = pytest.mark.browser

CHOSEN = re.compile(r"[?&]from=\d+&to=\d+")


def open_job(page: Page, chosen: str = "") -> None:
    page.goto(f"/jobs/orders/{chosen}")
    expect(page.locator("[data-live-pill]")).to_have_attribute("data-s", "live")
    expect(page.locator("#charts canvas")).to_have_count(4)
    expect(page.locator("#history path")).not_to_have_count(0)


def drag(page: Page, selector: str, start: float, end: float) -> None:
    """Press at one share of a thing's width, let go at another."""
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    y = box["y"] + 30
    page.mouse.move(box["x"] + box["width"] * start, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end, y, steps=4)
    page.mouse.up()


def test_a_stretch_is_dragged_over_kept_and_left(seeded_page: Page):
    page = seeded_page
    open_job(page)
    drag(page, "#history", 0.5, 0.7)
    page.wait_for_url(CHOSEN)
    said = page.locator("[data-span]")
    expect(said).to_contain_text(re.compile(r"\d\d:\d\d:\d\d to .*m "))
    chosen, words = page.url, said.inner_text()
    page.reload()
    expect(said).to_have_text(words)

    page.locator("#history").focus()
    page.keyboard.press("+")
    page.wait_for_url(lambda url: url != chosen)
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("-")
    expect(said).not_to_have_text(words)
    page.locator("#charts .plot-c").first.scroll_into_view_if_needed()
    before = page.url
    drag(page, "#charts .plot-c", 0.5, 0.8)
    page.wait_for_url(lambda url: url != before)

    page.get_by_role("button", name="Follow live").click()
    page.wait_for_url(lambda url: "from=" not in url)
    expect(page.locator("#ranges [data-m='10']")).to_have_attribute("aria-pressed", "true")


def test_a_plot_is_a_table_of_the_same_numbers(seeded_page: Page):
    page = seeded_page
    open_job(page)
    button = page.get_by_role("button", name="Throughput as a table")
    button.click()
    table = page.get_by_role("region", name="Throughput, as a table")
    expect(table.locator("th")).to_have_text(["Time", "in", "out"])
    expect(table.locator("tbody tr")).not_to_have_count(0)
    newest = table.locator("tbody tr").first.locator("td").nth(1).inner_text()
    legend = page.locator("#charts .plot-l b").first
    expect(legend).to_have_text(newest)
    assert violations(page) == []
    button.click()
    expect(table).to_have_count(0)


def test_a_pointer_shows_one_instant_in_every_line(seeded_page: Page):
    page, start, end = seeded_page, START_MS - 1_800_000, START_MS - 60_000
    open_job(page, f"?from={start}&to={end}")
    history = page.locator("#history")
    width = history.evaluate("node => node.clientWidth")
    x = round(width * 0.6)
    history.hover(position={"x": x, "y": 30})
    told = page.get_by_role("tooltip").locator("> div > span:last-child")
    expect(told).to_have_count(3)
    at = start + (x - GUTTER) / (width - GUTTER - RIGHT) * (end - start)
    assert told.all_inner_texts() == page.evaluate(AT_THAT_TIME, [at, start, end])
    at_x, to_y, lowest = history.evaluate(HAIR)
    assert abs(at_x - x) <= 1
    assert to_y >= lowest

    page.evaluate(
        "document.dispatchEvent(new Event('hw:theme'))"
    )  # it is drawn anew under the pointer
    expect(told).to_have_count(3)
    assert history.evaluate(HAIR)[0] == at_x

    page.keyboard.press("p")  # nothing is drawn again while the plots are read
    plot = page.locator("#charts .plot-c").nth(1)
    plot.scroll_into_view_if_needed()
    plot.hover()
    moments = page.locator("#charts .when")
    expect(moments.first).not_to_have_text("")
    first, *others = moments.all_inner_texts()
    assert others[:2] == [first] * 2  # checkpoints, the last plot, are at times of their own


HAIR = """history => {
    const of = (node, name) => Number(node.getAttribute(name));
    const hair = history.querySelector('.hair'), lanes = [...history.querySelectorAll('.lane')];
    return [of(hair, 'x1'), of(hair, 'y2'), of(lanes.at(-1), 'y1')];
}"""
GUTTER, RIGHT = 104, 14
"""Of a timeline, in pixels."""
AT_THAT_TIME = """async ([at, from, to]) => {
    const address = `${document.querySelector('#history').dataset.src}?from=${from}&to=${to}`;
    const { rate, delay } = await (await fetch(address)).json(), { fmt } = headwater;
    const nearest = points => points.filter(([t]) => t >= from && t <= to)
        .reduce((a, b) => (Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a))[1];
    return [fmt.hms(at), fmt.rateT(nearest(rate)), fmt.durT(nearest(delay))];
}"""
