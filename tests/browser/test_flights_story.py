"""The story: a year of flights, run, watched, savepointed, replayed and killed, in a browser."""

from __future__ import annotations

import os
import re
import signal
from datetime import timedelta

import polars as pl
import pytest
from playwright.sync_api import Page, expect
from polars.testing import assert_frame_equal

from engine.testing.cluster import wait_until
from examples.truth import EXAMPLES, read_output, truth, v1

pytestmark = pytest.mark.browser


def test_a_year_of_flights_from_login_to_replay(page: Page, platform):
    both_jobs_run_with_live_rates(page)
    the_job_page_shows_graph_history_and_output(page)
    a_savepoint_is_taken_with_the_button(page)
    a_schedule_is_added_and_takes_one_too(page)
    a_broken_file_is_refused_and_version_2_accepted(page)
    a_replay_catches_up_with_the_live_job(page)
    a_killed_worker_leaves_no_trace_in_the_output(page, platform)


def test_a_factor_from_the_control_form_amplifies_the_sensor(page: Page):
    page.goto("/jobs/sensors/")
    expect(page.locator("h1 .st")).to_contain_text("Running")
    form = page.locator("form[hx-post$='/control/']")
    form.get_by_label("Factor").fill("three")
    form.get_by_role("button", name="Send").click()
    expect(form.get_by_role("alert")).to_contain_text("must be a number")
    form.get_by_label("Factor").fill("3")
    form.get_by_role("button", name="Send").click()
    expect(page.locator(".toast")).to_contain_text("Sent “pressure 3”")
    wait_until(lambda: page.evaluate(AMPLIFIED), "the pressure is amplified")


AMPLIFIED = """async () => {
    const choice = encodeURIComponent('sensors_amplified|value|');
    const answer = await (await fetch(`/jobs/sensors/output.json?choice=${choice}`)).json();
    const pressure = answer.series.find(line => line.name === 'pressure');
    return Math.max(...pressure.points.map(point => point[1])) > 2.9;
}"""


def both_jobs_run_with_live_rates(page: Page) -> None:
    page.goto("/jobs/")
    for name in ("flights", "sensors"):
        row = page.locator(f"tbody[data-name={name}]")
        expect(row).to_have_attribute("data-state", "running")
        expect(row.locator(".c-in .lv")).to_contain_text(re.compile(r"\d"))
    expect(page.locator("[data-live-pill]")).to_have_attribute("data-s", "live")
    event_time = page.locator("tbody[data-name=flights] .c-ev time")
    before = event_time.get_attribute("datetime")
    expect(event_time).not_to_have_attribute("datetime", before or "")


def the_job_page_shows_graph_history_and_output(page: Page) -> None:
    page.get_by_role("link", name="flights", exact=True).click()
    page.wait_for_url("**/jobs/flights/")
    nodes = page.locator("#graph .nd")
    expect(nodes.first).to_contain_text("flights")
    expect(nodes.last).to_contain_text("daily")
    expect(nodes.first).to_contain_text(re.compile(r"\d\s*k?/s"))
    expect(page.locator("#ops tbody tr")).to_have_count(nodes.count())
    expect(page.locator("[data-output] canvas")).to_be_visible()
    expect(page.locator("#history svg .lane")).not_to_have_count(0)
    expect(page.locator("[data-checkpoints] rect")).not_to_have_count(0)


def a_savepoint_is_taken_with_the_button(page: Page) -> None:
    page.get_by_role("button", name="Savepoint", exact=True).click()
    dialog = page.locator("dialog#take")
    expect(dialog.get_by_label("Label")).to_be_focused()
    dialog.get_by_label("Label").fill("before version 2")
    dialog.get_by_role("button", name="Take savepoint").click()
    expect(dialog).not_to_be_visible()
    expect(page.locator(".toast")).to_contain_text("is complete")
    page.get_by_label("Job sections").get_by_role("link", name=re.compile("Savepoints")).click()
    row = page.locator("#catalogue tbody tr", has_text="before version 2")
    expect(row).to_contain_text("2013")
    expect(row.get_by_role("link", name="Replay from here")).to_be_visible()


def a_schedule_is_added_and_takes_one_too(page: Page) -> None:
    form = page.locator("#schedules form[hx-post]")
    form.get_by_label("Every").fill("soon")
    form.get_by_role("button").click()
    expect(form.get_by_role("alert")).to_have_text("Minutes must be a number, such as 30 or 0.5.")
    form.get_by_label("Every").fill("0.3")
    form.get_by_role("button").click()
    rows = page.locator("#schedule-rows")
    expect(rows).to_contain_text("Every 0.3 min")
    expect(rows).to_contain_text("next in")
    expect(rows).to_contain_text("succeeded")
    page.get_by_role("button", name=re.compile("Remove the schedule")).click()
    expect(page.locator("#schedule-rows")).to_contain_text("None.")


def a_broken_file_is_refused_and_version_2_accepted(page: Page) -> None:
    page.get_by_role("link", name="New version").click()
    form = page.locator("#upload")
    broken = {"name": "flights_v2.py", "mimeType": "text/x-python", "buffer": b"def x(:\n"}
    form.locator("input[type=file]").set_input_files(broken)
    form.get_by_role("button", name="Upload version").click()
    expect(form.get_by_role("alert")).to_contain_text("line 1")
    form.locator("input[type=file]").set_input_files(EXAMPLES / "flights_v2.py")
    form.get_by_label("Note").fill("a cancelled flight has no delay")
    form.get_by_role("button", name="Upload version").click()
    expect(page.locator("main table")).to_contain_text("a cancelled flight has no delay")


def a_replay_catches_up_with_the_live_job(page: Page) -> None:
    page.goto("/jobs/flights/savepoints/")
    row = page.locator("#catalogue tbody tr", has_text="before version 2")
    row.get_by_role("link", name="Replay from here").click()
    page.get_by_role("button", name="Continue to code").click()
    page.get_by_label("v2").check()
    page.get_by_role("button", name="Continue to sinks").click()
    expect(page.locator("main table")).to_contain_text("@r-")
    page.get_by_role("button", name="Continue to restore check").click()
    expect(page.locator("main table")).to_contain_text("daily")
    page.get_by_role("button", name="Continue to review").click()
    expect(page.locator(".review")).to_contain_text("version 2, flights_v2.py")
    page.reload()  # the plan is in the address
    expect(page.locator(".review")).to_contain_text("version 2, flights_v2.py")
    page.get_by_role("button", name="Start replay").click()
    page.wait_for_url("**/replays/*/")
    page.reload()  # what it shows does not hang on this page staying open
    expect(page.locator("h1 .st")).to_contain_text("Caught up")
    expect(page.locator("#slope svg")).to_be_visible()
    expect(page.locator("[data-output] .plot-l")).to_contain_text("live")
    expect(page.locator(".kpi")).to_contain_text("real time")


def a_killed_worker_leaves_no_trace_in_the_output(page: Page, platform) -> None:
    page.goto("/jobs/flights/")
    restarts = page.locator(".strip > div", has_text="Restarts").locator(".stat-v")
    expect(restarts).to_have_text("0")
    os.kill(platform.worker_of("flights"), signal.SIGKILL)
    expect(restarts).not_to_have_text("0")
    expect(page.locator("#happened")).to_contain_text("Restarted")
    expect(page.locator("h1 .st")).to_contain_text("Running")
    the_output_is_right(platform.home / "output" / "flights")


def the_output_is_right(folder) -> None:
    """It goes on, and every closed window equals the one computed from the recording."""
    expected, before = truth(v1), read_output(folder).height
    enough = min(before + 100, expected.height)
    wait_until(lambda: read_output(folder).height >= enough, "it has written since the kill")
    written = read_output(folder)
    closed = pl.col("window_end") <= written["window_end"].max() - timedelta(days=1)
    assert_frame_equal(
        written.filter(closed), expected.select(written.columns).filter(closed), check_exact=True
    )
