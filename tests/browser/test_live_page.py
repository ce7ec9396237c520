"""What the socket does to an open page: many patches, fragments, a role that is taken away."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from browser_socket import open_live, say
from engine.testing.cluster import wait_until
from seeded_process import SeededServer

pytestmark = pytest.mark.browser


@pytest.fixture
def page(seeded_page: Page) -> Page:
    return seeded_page


def test_five_hundred_patches_are_at_most_one_write_per_frame(page: Page):
    open_live(page, "/jobs/")
    most, writes, shown = page.evaluate(FLOOD)
    assert most == 1
    assert 2 <= writes <= 2 * FRAMES
    assert shown == "500k/s"


def test_p_holds_the_numbers_and_lets_them_go(page: Page, seeded: SeededServer):
    open_live(page, "/jobs/")
    rate = page.locator("tbody[data-name=orders] .c-in .lv")
    page.keyboard.press("p")
    expect(page.locator("[data-live-pill]")).to_contain_text("Held at")
    held, heard = rate.inner_text(), page.evaluate("heard.fleet")
    seeded.tick()
    wait_until(lambda: page.evaluate("heard.fleet") > heard, "the page has heard of that second")
    page.evaluate(TWO_FRAMES)
    assert rate.inner_text() == held
    page.keyboard.press("p")
    expect(rate).not_to_have_text(held)


TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


FRAMES = 25
FLOOD = """async () => {
    const cell = document.querySelector('[data-b="fleet 1.in rate"]'), writes = new Map();
    let frame = 0, said = 0;
    const count = () => { frame++; requestAnimationFrame(count); };
    requestAnimationFrame(count);
    new MutationObserver(list => writes.set(frame, (writes.get(frame) ?? 0) + list.length))
        .observe(cell, { childList: true });
    while (said < 500) {
        for (let i = 0; i < 20; i++)
            say({ k: 'patch', t: 'fleet', d: { 1: { in: 1000 * ++said } } });
        await new Promise(requestAnimationFrame);
    }
    for (let i = 0; i < 5; i++) await new Promise(requestAnimationFrame);
    const all = [...writes.values()];
    return [Math.max(...all), all.reduce((a, b) => a + b), cell.textContent];
}"""


MENU = "<details><summary>More</summary>Inspect</details>"


def test_a_fragment_changes_a_row_and_leaves_the_menu_in_it_open_and_focused(page: Page):
    open_live(page, "/jobs/orders/")
    row = page.locator("#ops tr", has_text="fx-convert")
    target = f"#ops tr[data-id='{row.get_attribute('data-id')}']"
    plain = row.evaluate("row => row.outerHTML")
    with_menu = plain.replace("</td>", f"{MENU}</td>", 1)
    say(page, {"k": "html", "t": "job.1", "target": target, "html": with_menu})
    menu = row.locator("summary")
    menu.focus()
    page.keyboard.press("Enter")
    expect(row.locator("details")).to_have_attribute("open", "")
    page.evaluate("() => { window.kept = document.activeElement; }")
    changed = with_menu.replace("×16", "×24")
    say(page, {"k": "html", "t": "job.1", "target": target, "html": changed})
    expect(row).to_contain_text("×24")
    expect(row.locator("details")).to_have_attribute("open", "")
    assert page.evaluate("document.activeElement === kept && kept.isConnected")


def test_a_fragment_that_covers_charts_and_graph_leaves_their_nodes_as_they_are(page: Page):
    open_live(page, "/jobs/orders/")
    expect(page.locator("#charts canvas")).to_have_count(4)
    expect(page.locator("#graph .nd")).to_have_count(11)
    expect(page.locator("#insp .dist svg")).to_be_visible()
    page.evaluate(
        "() => { window.kept = [...document.querySelectorAll('canvas, #graph .nd, #insp h2')]; }"
    )
    covered = page.evaluate(MAIN)
    assert "<canvas" not in covered
    say(page, {"k": "html", "t": "job.1", "target": "#main", "html": covered})
    expect(page.locator("#ops td", has_text="told again").first).to_be_visible()
    assert page.evaluate("kept.length === 16 && kept.every(node => node.isConnected)")


MAIN = """async () => {
    const text = await (await fetch(location)).text();
    const main = new DOMParser().parseFromString(text, 'text/html').querySelector('#main');
    main.querySelector('#ops td').append('told again');
    return main.outerHTML;
}"""


def test_a_role_that_is_taken_away_leaves_nothing_live_and_nothing_to_press(
    member_page: Page, seeded: SeededServer
):
    page = member_page
    open_live(page, "/jobs/orders/")
    page.get_by_role("button", name="Stop", exact=True).click()
    dialog = page.locator("dialog#stop")
    dialog.get_by_label("Type orders to confirm").fill("orders")
    expect(dialog.locator("[data-armed]")).to_be_enabled()
    seeded.tell("remove")
    try:
        pill = page.locator("[data-live-pill]")
        expect(pill).to_have_attribute("data-s", "gone")
        expect(pill).to_have_text(re.compile(r"No longer live, data from \d\d:\d\d:\d\d"))
        expect(dialog.locator("[data-armed]")).to_be_disabled()
        expect(dialog.get_by_role("alert")).to_contain_text("You may no longer see this")
        opener = page.locator("[data-open=take]").first
        expect(opener).to_be_disabled()
        expect(opener).to_have_attribute("title", re.compile("reload the page"))
        rate = page.locator("[data-b='job.1 in rate']")
        before = rate.inner_text()
        seeded.tick(2)
        assert rate.inner_text() == before
        assert page.reload().status == 404
    finally:
        seeded.tell("join")


def test_a_job_that_fails_is_said_once_and_moves_when_nobody_reads_the_list(
    page: Page, seeded: SeededServer
):
    seeded.tell("doomed")
    open_live(page, "/jobs/")
    names, row = page.locator("#jobs a.name"), page.locator("tbody[data-name=returns]")
    expect(row).to_have_attribute("data-state", "running")
    page.evaluate(LISTEN_TO_WHAT_IS_SAID)
    row.hover()
    before, note = names.all_inner_texts(), page.locator(".order-held")
    seeded.tell("doom")
    expect(note).to_contain_text("Order held")
    expect(row).to_have_attribute("data-state", "failed")
    expect(row).to_contain_text("Row 17 has no price")
    assert names.all_inner_texts() == before
    page.mouse.move(0, 0)
    expect(note).to_be_hidden()
    attention = page.locator("tbody[data-head=attention] ~ tbody[data-id]")
    expect(attention.filter(has_text="returns")).to_be_visible()
    expect(page.locator("#jobs tbody[data-id]").filter(has_text="returns")).to_have_count(1)
    expect(names).not_to_have_text(before)
    assert page.evaluate("said") == ["returns: failed"]


LISTEN_TO_WHAT_IS_SAID = """() => {
    window.said = [];
    const region = document.querySelector('#aloud[role=status]');
    new MutationObserver(() => said.push(region.textContent)).observe(region, { childList: true });
}"""
