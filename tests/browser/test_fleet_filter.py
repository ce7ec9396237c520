"""The filter of the list of jobs, where the page holds only some of them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_what_is_typed_is_looked_for_among_all_jobs(seeded_page: Page):
    page = seeded_page
    rows = page.locator("#jobs tbody[data-name]:visible")
    page.goto("/jobs/")
    expect(rows.locator("a.name", has_text="wide")).to_be_visible()
    every = rows.count()
    page.goto("/jobs/?f=orders")
    expect(rows).to_have_count(1)
    field = page.locator("#f")
    field.fill("wide")
    expect(rows).to_have_count(1)
    expect(rows.locator("a.name")).to_have_text("wide")
    page.wait_for_url("**/?f=wide")
    field.fill("nothing of this name")
    expect(page.locator("#none")).to_be_visible()
    field.fill("")
    expect(rows).to_have_count(every)
