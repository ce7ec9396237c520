"""Without a mouse: deploy, savepoint, stop, the steps of a replay, and the events of a timeline."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from browser_socket import open_live
from people import JOB_FILE
from seeded_process import SeededServer

pytestmark = pytest.mark.browser

MOST_TABS = 60
FOCUSED = "node => node === document.activeElement"


@pytest.fixture
def page(member_page: Page) -> Page:
    return member_page


def walk(page: Page, target: Locator) -> None:
    """Go there by Tab."""
    expect(target).to_be_visible()
    for _ in range(MOST_TABS):
        if target.evaluate(FOCUSED):
            return
        page.keyboard.press("Tab")
    expect(target).to_be_focused()


def press(page: Page, target: Locator, key: str = "Enter") -> None:
    """Go there by Tab, and press a key."""
    walk(page, target)
    page.keyboard.press(key)


def open_page(page: Page, address: str) -> None:
    """Open it and skip to its content."""
    page.goto(address)
    press(page, page.get_by_role("link", name="Skip to content"))


def test_a_job_is_deployed(page: Page, seeded: SeededServer):
    open_page(page, "/jobs/")
    press(page, page.get_by_role("button", name="Deploy job"))
    dialog = page.locator("dialog#deploy")
    expect(dialog.get_by_label("Name")).to_be_focused()
    page.keyboard.type("by-keys")
    with page.expect_file_chooser() as chosen:
        press(page, dialog.locator("input[type=file]"), "Space")
    file = {"name": "by_keys.py", "mimeType": "text/x-python", "buffer": JOB_FILE}
    chosen.value.set_files(file)
    press(page, dialog.get_by_role("button", name="Deploy"))
    page.wait_for_url("**/jobs/by-keys/")
    expect(page.locator(".toast", has_text="Start by-keys")).to_be_visible()
    seeded.tell("work")
    expect(page.locator("h1")).to_contain_text("by-keys")


def test_a_savepoint_is_taken(page: Page):
    open_live(page, "/jobs/wide/")
    page.keyboard.press("s")
    expect(page.locator("dialog#take").get_by_label("Label")).to_be_focused()
    page.keyboard.type("without a mouse")
    page.keyboard.press("Enter")
    expect(page.locator(".toast", has_text="Savepoint of wide")).to_be_visible()


def test_a_job_is_stopped_only_when_its_name_was_typed(page: Page):
    asked: list[str] = []
    open_page(page, "/jobs/many/")

    def refuse(route):
        asked.append(route.request.post_data)
        route.fulfill(status=409, headers={"X-Refused": "busy"}, body="<p>Not now.</p>")

    page.route("**/stop/", refuse)
    opener = page.get_by_role("button", name="Stop", exact=True)
    press(page, opener)
    dialog = page.locator("dialog#stop")
    expect(dialog.get_by_label("Type many to confirm")).to_be_focused()
    page.keyboard.type("many")
    press(page, dialog.locator("[data-armed]"))
    expect(dialog.get_by_role("alert")).to_have_text("Not now.")
    assert len(asked) == 1
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()


def test_a_replay_is_planned(page: Page):
    open_page(page, "/replays/new/?job=orders")
    chosen = page.locator("input[name=sp]:checked")
    walk(page, chosen)
    first = chosen.input_value()
    page.keyboard.press("ArrowDown")
    expect(chosen).not_to_have_value(first)
    press(page, page.get_by_role("button", name="Continue to code"))
    page.wait_for_url(re.compile("step=code"))
    press(page, page.get_by_role("button", name="Continue to sinks"))
    page.wait_for_url(re.compile("step=sinks"))
    press(page, page.get_by_role("button", name="Continue to restore check"))
    page.wait_for_url(re.compile("step=restore"))
    assert f"sp={first}" not in page.url


def test_events_of_a_timeline_are_walked_and_a_merged_one_lists_its_members(page: Page):
    open_live(page, "/jobs/")
    events = page.locator("[data-changes] .ev[tabindex]")
    expect(events.first).to_be_visible()
    last = events.count() - 1
    events.nth(last).focus()
    told = {}
    for at in reversed(range(last)):
        page.keyboard.press("ArrowLeft")
        expect(events.nth(at)).to_be_focused()
        name = events.nth(at).get_attribute("aria-label")
        told[name] = page.get_by_role("tooltip").locator("> div").all_inner_texts()
    merged = next(name for name in told if re.search(r"\d+ savepoints", name))
    members = [line for line in told[merged] if re.match(r"\d\d:\d\d:\d\d .*avepoint", line)]
    assert len(members) == int(re.search(r"(\d+) savepoints", merged)[1])
