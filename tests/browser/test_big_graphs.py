"""Large jobs, over seeded data: three hundred operators, and an operator of 1,600 subtasks."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from seeded_jobs import MANY, MANY_OPS, WIDE
from seeded_process import SeededServer

pytestmark = pytest.mark.browser

FIRST_PAINT_MS = 2_000
LONG_TASK_MS = 50
TRIES = 5
"""One quiet round is enough."""
TICKS = 3


@pytest.fixture
def page(seeded_page: Page) -> Page:
    return seeded_page


def test_three_hundred_operators_are_painted_and_followed(page: Page, seeded: SeededServer):
    assert quickest_paint(page, "/jobs/wide/") < FIRST_PAINT_MS
    expect(page.locator("#graph .nd")).to_have_count(WIDE)
    expect(page.locator("#ops tbody tr:visible")).to_have_count(60)
    rate = page.locator("#ops tbody tr").nth(30).locator("td").nth(2)
    before = rate.inner_text()
    assert fewest_long_tasks(page, seeded) == []
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
    assert "op=" in page.url


def test_1600_subtasks_are_painted_and_followed(page: Page, seeded: SeededServer):
    address = f"/jobs/many/op/{MANY_OPS[1].id}/"
    assert quickest_paint(page, address) < FIRST_PAINT_MS
    expect(page.locator("#spread svg")).to_have_attribute(
        "aria-label", re.compile(f"Records/s of {MANY} subtasks.*highest .* in subtask 711")
    )
    assert fewest_long_tasks(page, seeded) == []


def quickest_paint(page: Page, address: str) -> float:
    """Milliseconds from the request to the first content, in the quickest of a few tries."""
    return min(paint(page, address) for _ in range(TRIES))


def paint(page: Page, address: str) -> float:
    page.goto(address)
    page.wait_for_function("window.headwater")
    took: float = page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    return took


def fewest_long_tasks(page: Page, seeded: SeededServer) -> list[float]:
    """Durations of the long tasks while figures change, in the quietest of a few rounds."""
    expect(page.locator("[data-live-pill]")).to_have_attribute("data-s", "live")
    return min((long_tasks(page, seeded) for _ in range(TRIES)), key=len)


def long_tasks(page: Page, seeded: SeededServer) -> list[float]:
    """In milliseconds of processor time: on a machine that others use every task is a long one."""
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["toplevel", TIMELINE])
    for _ in range(TICKS):
        seeded.tick()
        page.evaluate(A_FEW_FRAMES)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    main = {thread(one) for one in events if one.get("args", {}).get("name") == "CrRendererMain"}
    tasks = [one for one in events if one["name"] == "RunTask" and thread(one) in main]
    assert tasks
    took = [one.get("tdur", 0) / 1_000 for one in tasks]
    return [ms for ms in took if ms > LONG_TASK_MS]


def thread(event: dict[str, Any]) -> tuple[int, int]:
    return event["pid"], event["tid"]


TIMELINE = "disabled-by-default-devtools.timeline"
A_FEW_FRAMES = """async () => {
    for (let frame = 0; frame < 30; frame++) await new Promise(requestAnimationFrame);
}"""
