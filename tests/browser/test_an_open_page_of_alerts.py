"""The page of alerts on the real platform: what fires comes and goes while somebody looks."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page, expect

pytestmark = pytest.mark.browser


def test_an_alert_comes_and_goes_without_a_reload(context: BrowserContext, page: Page):
    page.goto("/alerts/")
    expect(page.locator("#alerts")).to_contain_text("Nothing fires")
    page.evaluate("window.kept = true")
    elsewhere = context.new_page()
    elsewhere.goto("/alerts/")
    form = elsewhere.locator("form#rule")
    form.get_by_label("What").select_option("restarts")
    form.get_by_label("From").fill("0")
    form.get_by_label("For, s").fill("0")
    form.get_by_label("Job").fill("sensors")
    form.get_by_role("button", name="Add rule").click()

    expect(page.locator("#alerts tbody tr")).to_contain_text("Restarts in the last hour")
    expect(page.locator("#firing")).to_have_text("1 firing")
    elsewhere.get_by_role("button", name="Pause restarts").click()
    expect(page.locator("#alerts")).to_contain_text("Nothing fires")
    expect(page.locator("#firing")).to_have_text("0 firing")
    expect(page.locator("#over tbody tr").first).to_contain_text("sensors")
    assert page.evaluate("window.kept")
    elsewhere.get_by_role("button", name="Remove").click()
    expect(elsewhere.locator("main")).to_contain_text("No rule looks at anything yet.")
