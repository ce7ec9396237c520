"""A replay on its page: its progress, what stands before a cut over, the cut over, and the ends."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from axe import violations
from browser_keys import press
from browser_socket import open_live, say
from browser_widths import too_wide
from seeded_process import SeededServer

pytestmark = pytest.mark.browser

TO_CATCH_UP = 8
"""Ticks: three samples beside the live job, and a second without a break."""
NO_NUMBER = re.compile(r"NaN|Infinity|undefined|(?<![\w-])[-−]\d")
HOW_FAR = "[data-b$=' pct percent']"


@pytest.fixture
def replay(revenue: SeededServer, member_page: Page) -> str:
    """The address of one that has just been started, at half the speed of the live job."""
    revenue.tell("pace 0.5")
    revenue.tell("replay")
    member_page.goto("/replays/")
    newest = member_page.locator("#replays tbody tr").first.locator("a.name")
    return newest.get_attribute("href") or ""


def ask(dialog: Locator, name: str) -> Locator:
    """The dangerous button of a dialog, which only the exact name enables."""
    button, field = dialog.locator("[data-armed]"), dialog.get_by_label(f"Type {name} to confirm")
    for wrong in ("", name[:-1], name.upper(), f" {name}"):
        field.fill(wrong)
        expect(button).to_be_disabled()
    field.fill(name)
    expect(button).to_be_enabled()
    return button


def test_progress_is_told_as_it_is_until_the_replay_is_abandoned(
    replay: str, revenue: SeededServer, member_page: Page
):
    page = member_page
    it_says_that_it_does_not_catch_up(page, replay, revenue)
    it_goes_back_only_with_a_restart_which_the_chart_shows(page, revenue)
    it_is_abandoned_by_its_name_and_the_live_job_goes_on(page, replay, revenue)


def it_says_that_it_does_not_catch_up(page: Page, address: str, revenue: SeededServer) -> None:
    open_live(page, address)
    revenue.tick(3)
    eta = page.locator("[data-eta]")
    expect(eta).to_have_text("not catching up")
    expect(eta).to_have_class(re.compile("t-warn"))
    expect(page.locator("[data-note]")).to_contain_text("it plays 0.5× real time, the live job 1")
    assert not NO_NUMBER.search(page.locator("main").inner_text())


def it_goes_back_only_with_a_restart_which_the_chart_shows(
    page: Page, revenue: SeededServer
) -> None:
    revenue.tell("pace 1800")
    far = page.locator(HOW_FAR).first
    before = far.inner_text()
    revenue.tick()
    expect(far).not_to_have_text(before)
    page.reload()  # what moved may have been one of the seconds before
    reached = far.inner_text()
    assert percent(reached) > percent(before)
    revenue.tell("pace 0")  # the live job goes on, and the way to it grows
    revenue.tick(2)
    page.reload()
    expect(page.locator("[data-live-pill]")).to_have_attribute("data-s", "live")
    expect(far).to_have_text(reached)
    expect(page.locator("#slope svg")).to_be_visible()
    expect(page.locator("#slope [data-restart]")).to_have_count(0)
    revenue.tell("set back")
    revenue.tick()
    expect(far).not_to_have_text(reached)
    assert percent(far.inner_text()) < percent(reached)
    page.reload()
    expect(page.locator("#slope [data-restart]")).to_contain_text("restarted")


def percent(text: str) -> float:
    return float(text.replace("%", ""))


def it_is_abandoned_by_its_name_and_the_live_job_goes_on(
    page: Page, address: str, revenue: SeededServer
) -> None:
    name = f"r-{address.strip('/').rpartition('/')[2]}"
    opener = page.get_by_role("button", name="Abandon", exact=True)
    opener.click()
    dialog = page.locator("dialog#abandon")
    expect(dialog).to_contain_text("revenue is not touched")
    expect(dialog.locator("footer button").first).to_have_text("Go on replaying")
    button = ask(dialog, name)
    button.click()
    expect(page.locator(".toast")).to_be_visible()
    revenue.tell("finish")
    expect(page.locator("h1 .st")).to_contain_text("Abandoned")
    runs = page.request.get("/api/v1/jobs/revenue/runs").json()
    newest = {one["purpose"]: one["state"] for one in reversed(runs["items"])}
    assert newest == {"live": "RUNNING", "replay": "CANCELED"}


def test_without_a_mouse_a_replay_is_cut_over_when_nothing_is_open_and_rolled_back(
    replay: str, revenue: SeededServer, member_page: Page
):
    page = member_page
    revenue.tell("pace 86400")
    revenue.tell("differ")
    revenue.tick(TO_CATCH_UP)
    open_live(page, replay)
    nothing_is_wider_than_its_place_and_axe_finds_nothing(page)
    what_is_open_is_said_until_it_is_accepted(page)
    a_change_meanwhile_blocks_the_cut_over(page, replay)
    it_is_cut_over_and_rolled_back(page, replay, revenue)


def nothing_is_wider_than_its_place_and_axe_finds_nothing(page: Page) -> None:
    expect(page.locator(".causes tbody tr")).to_have_count(2)
    assert too_wide(page) + violations(page) == []
    page.get_by_role("button", name="Abandon", exact=True).click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1440, "height": 900})


def what_is_open_is_said_until_it_is_accepted(page: Page) -> None:
    expect(page.locator("h1 .st")).to_contain_text("Caught up")
    cut_over = page.get_by_role("button", name="Cut over", exact=True)
    expect(cut_over).to_be_disabled()
    expect(cut_over).to_have_attribute("title", re.compile("2 kinds of differences are not"))
    gate = page.locator("#gates li", has_text="Differences reviewed")
    expect(gate).to_contain_text("2 kinds of differences are not accepted")
    for left in (1, 0):
        press(page, page.get_by_role("button", name=re.compile("^Accept")).first)
        expect(page.locator("#compared")).to_contain_text(f"{left} of 2 open")
    expect(gate).to_contain_text("2 of 2 accepted")
    expect(cut_over).to_be_enabled()


def a_change_meanwhile_blocks_the_cut_over(page: Page, address: str) -> None:
    number = address.strip("/").rpartition("/")[2]
    opener = page.get_by_role("button", name="Cut over", exact=True)
    press(page, opener)
    dialog = page.locator("dialog#promote")
    expect(dialog.get_by_role("radio").first).to_be_checked()
    expect(dialog).to_contain_text("Expected pause")
    button = ask(dialog, f"r-{number}")
    say(page, {"k": "patch", "t": f"replay.{number}", "d": {"status": "replaying"}})
    expect(dialog.get_by_role("alert")).to_contain_text("it is replaying now")
    expect(button).to_be_disabled()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()
    say(page, {"k": "patch", "t": f"replay.{number}", "d": {"status": "caught_up"}})


def it_is_cut_over_and_rolled_back(page: Page, address: str, revenue: SeededServer) -> None:
    name = f"r-{address.strip('/').rpartition('/')[2]}"
    head = page.locator("#head")
    for button, dialog, done in (
        ("Cut over", "promote", "Promoted"),
        ("Roll back", "roll-back", "Rolled back"),
    ):
        opener = page.get_by_role("button", name=button, exact=True)
        press(page, opener)
        asked = page.locator(f"dialog#{dialog}")
        press(page, ask(asked, name))
        expect(asked).to_be_hidden()
        revenue.tell("finish")
        expect(head.locator("h1 .st")).to_contain_text(done)
        expect(head.get_by_role("status")).to_contain_text(done)
        expect(head.get_by_role("link", name="revenue")).to_be_visible()
    expect(head.get_by_role("status")).to_contain_text("The version before runs again")
