"""Large jobs, over seeded data: three hundred operators, and an operator of 1,600 subtasks."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from seeded_jobs import MANY, MANY_OPS, WIDE
from seeded_process import SeededServer

pytestmark = pytest.mark.browser


@pytest.fixture
def page(seeded_page: Page) -> Page:
    return seeded_page


def test_three_hundred_operators_are_shown_and_followed(page: Page, seeded: SeededServer):
    page.goto("/jobs/wide/")
    expect(page.locator("#graph .nd")).to_have_count(WIDE)
    expect(page.locator("#ops tbody tr:visible")).to_have_count(60)
    rate = page.locator("#ops tbody tr").nth(30).locator("td").nth(2)
    before = rate.inner_text()
    expect(page.locator("[data-live-pill]")).to_have_attribute("data-s", "live")
    seeded.tick()
    expect(rate).not_to_have_text(before)
    page.get_by_role("button", name=f"Show all {WIDE} operators").click()
    expect(page.locator("#ops tbody tr:visible")).to_have_count(WIDE)


def test_an_operator_is_found_among_three_hundred(page: Page):
    page.goto("/jobs/wide/")
    expect(page.locator("#graph .nd")).to_have_count(WIDE)
    page.get_by_label("Find an operator").fill("step-217")
    expect(page.locator("#ops tbody tr:visible")).to_have_count(1)
    expect(page.locator("#graph .nd:not(.dim)")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("#insp h2")).to_have_text("step-217")
    expect(page.locator("#graph .nd[aria-pressed=true]")).to_be_in_viewport()
    page.wait_for_url(re.compile("op="))


def test_1600_subtasks_are_shown(page: Page):
    page.goto(f"/jobs/many/op/{MANY_OPS[1].id}/")
    expect(page.locator("#spread svg")).to_have_attribute(
        "aria-label", re.compile(f"Records/s of {MANY} subtasks.*highest .* in subtask 711")
    )
