"""The list of jobs: what is typed narrows it, a column sorts it, and the address keeps both."""

from __future__ import annotations

import re

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


def test_keys_narrow_the_list_and_a_key_that_is_none_is_said(seeded_page: Page):
    page = seeded_page
    rows = page.locator("#jobs tbody[data-name]:visible")
    page.goto("/jobs/")
    every = rows.count()
    page.keyboard.press("/")
    page.keyboard.type("team:payments state:running wide")
    expect(rows).to_have_count(1)
    assert "f=team%3Apayments+state%3Arunning+wide" in page.url
    page.reload()
    expect(page.locator("#f")).to_have_value("team:payments state:running wide")
    expect(rows).to_have_count(1)
    page.locator("#f").focus()
    page.keyboard.press("End")
    page.keyboard.press("Control+Backspace")
    expect(rows).not_to_have_count(1)
    page.locator("#f").fill("team:nobody")
    expect(rows).to_have_count(0)
    expect(page.locator("#none")).to_contain_text(f"{every} are hidden by it")
    page.locator("#none").get_by_text("Clear filter").click()
    expect(rows).to_have_count(every)
    page.goto("/jobs/?f=owner:me")
    expect(page.get_by_role("alert")).to_contain_text("no key owner: use team or state")


def test_a_column_sorts_down_up_and_not_at_all(seeded_page: Page):
    page = seeded_page
    page.goto("/jobs/")
    head = page.get_by_role("columnheader", name="Records in")
    names = page.locator("#jobs tbody[data-name] a.name")
    usual = names.all_inner_texts()
    orders = []
    for direction, sort in (("descending", "sort=-in"), ("ascending", "sort=in")):
        head.get_by_role("link").click()
        page.wait_for_url(re.compile(re.escape(sort)))
        expect(head).to_have_attribute("aria-sort", direction)
        orders.append(names.all_inner_texts())
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(usual)
    assert orders[0] != orders[1]
    head.get_by_role("link").click()
    page.wait_for_url(re.compile("sort=name"))
    expect(head).not_to_have_attribute("aria-sort", re.compile("."))
    assert names.all_inner_texts() == usual
