"""The frame of every page: keys, formats and what it must never do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

FIXTURE = json.loads((Path(__file__).parents[1] / "dashboard" / "format.json").read_text("utf-8"))


def test_the_browser_formats_as_the_fixture_says(page: Page):
    page.goto("/jobs/")
    printed = page.evaluate(
        "cases => cases.map(c => headwater.fmt[`${c.kind}T`](c.value))", FIXTURE["numbers"]
    )
    assert printed == [case["text"] for case in FIXTURE["numbers"]]
    cells = page.evaluate(
        "cases => cases.map(c => headwater.fmt.formats[c.format](c.value))", FIXTURE["cells"]
    )
    assert cells == [case["html"] for case in FIXTURE["cells"]]


def test_slash_filters_and_the_address_keeps_it(page: Page):
    page.goto("/jobs/")
    expect(page.locator("tbody[data-name=sensors]")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("flig")
    expect(page.locator("tbody[data-name=sensors]")).to_be_hidden()
    page.reload()
    expect(page.locator("#f")).to_have_value("flig")
    expect(page.locator("tbody[data-name=sensors]")).to_be_hidden()
    page.locator("#f").fill("nothing like it")
    page.locator("#none").get_by_text("Clear filter").click()
    expect(page.locator("tbody[data-name=sensors]")).to_be_visible()


def test_j_walks_and_enter_opens(page: Page):
    page.goto("/jobs/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.locator("tbody[data-name] a.name").nth(1)
    expect(second).to_be_focused()
    address = second.get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{address}")


def test_arrow_keys_follow_the_edges_of_the_graph(page: Page):
    page.goto("/jobs/flights/")
    first, last = page.locator("#graph .nd").first, page.locator("#graph .nd").last
    first.focus()
    page.keyboard.press("ArrowRight")
    expect(last).to_be_focused()
    expect(page.locator("#ops tr[aria-selected=true]")).to_contain_text("daily")
    page.keyboard.press("ArrowLeft")
    expect(first).to_be_focused()
    page.wait_for_url(re.compile("op="))


def test_stop_wants_the_exact_name_and_offers_the_safe_way_first(page: Page):
    page.goto("/jobs/flights/")
    page.get_by_role("button", name="Stop", exact=True).click()
    dialog = page.locator("dialog#stop")
    expect(dialog.get_by_label("Stop with savepoint")).to_be_checked()
    button = dialog.locator("[data-armed]")
    expect(button).to_be_disabled()
    dialog.get_by_label("Type flights to confirm").fill("flight")
    expect(button).to_be_disabled()
    dialog.get_by_label("Type flights to confirm").fill("flights")
    expect(button).to_be_enabled()
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_focused()


def test_the_page_works_without_scripts(chromium, session, platform):
    context = chromium.new_context(
        storage_state=session, base_url=platform.url, java_script_enabled=False
    )
    page = context.new_page()
    page.goto("/jobs/flights/savepoints/")
    form = page.locator("form[action$='/take/']").first
    form.locator("input[name=label]").fill("no scripts")
    form.locator("button").last.click()
    expect(page.locator("#catalogue")).to_contain_text("no scripts")
    context.close()


def test_the_time_zone_switch_reaches_every_time(chromium, session, platform):
    context = chromium.new_context(
        storage_state=session, base_url=platform.url, timezone_id="Asia/Tokyo"
    )
    page = context.new_page()
    page.goto("/jobs/sensors/checkpoints/")
    times = page.locator("#history-rows time[data-as=stamp]")
    utc = times.first.inner_text()
    page.locator("[data-tz]").click()
    expect(times.first).not_to_have_text(utc)
    context.close()
