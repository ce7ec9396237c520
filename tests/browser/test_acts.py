"""What buttons do: an operation from the click to its result, one request a click, no surprise."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from browser_socket import open_live, say
from seeded_process import SeededServer

pytestmark = pytest.mark.browser

TRIES = 9
"""Of a worker, until a savepoint that fails has failed for good."""


@pytest.fixture
def page(seeded_page: Page) -> Page:
    return seeded_page


def take(page: Page, label: str) -> Locator:
    """The dialog of a savepoint, filled in; gives its button."""
    page.get_by_role("button", name="Savepoint", exact=True).click()
    dialog = page.locator("dialog#take")
    dialog.get_by_label("Label").fill(label)
    return dialog.get_by_role("button", name="Take savepoint")


def test_a_savepoint_is_followed_from_the_click_to_its_result(page: Page, seeded: SeededServer):
    open_live(page, "/jobs/orders/")
    take(page, "by hand").click()
    toast = page.locator(".toast", has_text="Savepoint of orders")
    expect(toast).to_be_visible()
    seeded.tell("work")
    seeded.tick()
    seeded.tell("work")
    expect(toast).to_contain_text("every task to write its part: 104 of 163 have")
    page.reload()
    expect(toast).to_contain_text("104 of 163 have")
    expect(page.get_by_label("Running operations")).to_contain_text("104 of 163 have")
    seeded.tick()
    seeded.tell("work")
    expect(toast).to_contain_text("is complete")
    seeded.tick()
    page.goto("/jobs/orders/savepoints/")
    expect(page.locator("#catalogue")).to_contain_text("by hand")


def test_a_savepoint_that_fails_says_why_and_leaves_the_button_free(
    page: Page, seeded: SeededServer
):
    open_live(page, "/jobs/orders/")
    seeded.tell("break")
    take(page, "in vain").click()
    toast = page.locator(".toast", has_text="Savepoint of orders")
    expect(toast).to_be_visible()
    for _ in range(TRIES):
        seeded.tell("work")
    seeded.tell("mend")
    expect(toast).to_contain_text("savepoint cannot be written: /unwritable is read-only")
    button = take(page, "again")
    expect(button).to_be_enabled()
    expect(button).not_to_have_attribute("aria-busy", "true")


def test_a_double_click_is_one_request_with_one_key_and_the_button_is_busy_meanwhile(page: Page):
    asked: list[Route] = []
    page.route("**/take/", lambda route: asked.append(route))
    open_live(page, "/jobs/orders/")
    button = take(page, "once")
    button.dblclick()
    expect(button).to_have_attribute("aria-busy", "true")
    button.press("Enter")
    [one] = asked
    (key,) = parse_qs(one.request.post_data)["idempotency_key"]
    assert len(key) >= 32
    one.fulfill(
        status=409, headers={"X-Refused": "busy"}, body="<p>Something else is under way.</p>"
    )
    expect(page.locator("dialog#take").get_by_role("alert")).to_have_text(
        "Something else is under way."
    )
    expect(button).not_to_have_attribute("aria-busy", "true")
    button.click()
    expect(button).to_have_attribute("aria-busy", "true")
    again = parse_qs(asked[-1].request.post_data)["idempotency_key"]
    assert again == [key]  # what was refused was not done: it is the same wish
    asked[-1].fulfill(status=202, headers={"HX-Trigger": '{"said": "It is asked for."}'})
    expect(page.locator(".toast", has_text="It is asked for.")).to_be_visible()
    assert page.locator("dialog#take input[name=idempotency_key]").input_value() != key
    assert len(asked) == 2


def test_what_changes_while_a_dialog_is_open_is_shown_and_blocks_it(page: Page):
    open_live(page, "/jobs/orders/")
    opener = page.get_by_role("button", name="Stop", exact=True)
    opener.click()
    dialog = page.locator("dialog#stop")
    dialog.get_by_label("Type orders to confirm").fill("orders")
    expect(dialog.locator("[data-armed]")).to_be_enabled()
    say(page, {"k": "patch", "t": "job.1", "d": {"state": "FAILED"}})
    expect(dialog.get_by_role("alert")).to_have_text(
        re.compile("changed since .*: it is failed now")
    )
    expect(dialog.locator("[data-armed]")).to_be_disabled()
    dialog.get_by_label("Type orders to confirm").fill("orders")
    expect(dialog.locator("[data-armed]")).to_be_disabled()
    say(page, {"k": "patch", "t": "job.1", "d": {"state": "RUNNING"}})
    page.keyboard.press("Escape")
    opener.click()
    expect(dialog.get_by_role("alert")).to_be_hidden()
    dialog.get_by_label("Type orders to confirm").fill("orders")
    expect(dialog.locator("[data-armed]")).to_be_enabled()
