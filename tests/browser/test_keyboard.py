"""Without a mouse: deploy, savepoint, stop, the steps of a replay, and the events of a timeline."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from browser_keys import press, walk
from browser_socket import open_live
from people import JOB_FILE
from seeded_process import SeededServer

pytestmark = pytest.mark.browser


@pytest.fixture
def page(member_page: Page) -> Page:
    return member_page


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


def test_a_replay_is_planned_agreed_to_and_started(page: Page, revenue: SeededServer):
    open_page(page, "/replays/new/?job=revenue")
    chosen = page.locator("input[name=sp]:checked")
    walk(page, chosen)
    newest = chosen.input_value()
    page.keyboard.press("ArrowUp")  # from the first to the last, the oldest
    expect(chosen).not_to_have_value(newest)
    oldest = chosen.input_value()
    for step in ("code", "sinks", "restore check"):
        press(page, page.get_by_role("button", name=f"Continue to {step}"))
        page.wait_for_url(re.compile(f"step={step.partition(' ')[0]}"))
    expect(page.get_by_role("status")).to_contain_text(["1 state has no place", "The savepoint is"])
    forward, boxes = page.get_by_role("button", name="Continue to review"), page.locator(CONSENTS)
    press(page, forward)
    expect(boxes.first).to_be_focused()  # it waits for an answer
    press(page, boxes.first, "Space")
    press(page, forward)
    expect(boxes.last).to_be_focused()
    page.keyboard.press("Space")
    press(page, forward)
    page.wait_for_url(re.compile(f"sp={oldest}&.*accept=flights&drop=late-orders&step=review"))
    review = page.locator(".review")
    expect(review).to_contain_text("late-orders is left behind, 80 rows")
    expect(review).to_contain_text("split 'JFK', event time from 2026-11-28")
    press(page, page.get_by_role("button", name="Start replay"))
    page.wait_for_url(re.compile(r"/replays/\d+/"))
    revenue.tell("work")
    page.goto("/audit/")
    made = page.locator("main tr", has_text="replay.create").first
    expect(made).to_contain_text("late-orders")
    expect(made).to_contain_text("flights")


CONSENTS = "main input[type=checkbox]"


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
