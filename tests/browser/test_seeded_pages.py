"""The live pages over seeded data, where the clock moves only when a test moves it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from axe import violations
from browser_widths import too_wide
from seeded_jobs import ORDERS, START_MS
from seeded_process import SeededServer

pytestmark = pytest.mark.browser

JOIN = ORDERS[2]
STALE_AFTER_MS = 13_000
STEPS = ("start", "code", "sinks", "restore", "review")
CONSENTS = "&accept=flights&drop=late-orders"


@pytest.fixture
def page(seeded_page: Page) -> Page:
    return seeded_page


def live(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("[data-live-pill]")).to_have_attribute("data-s", "live")


@pytest.mark.parametrize(
    "address",
    [
        "/jobs/orders/",
        f"/jobs/orders/op/{JOIN.id}/",
        "/jobs/orders/checkpoints/",
        "/savepoints/1/",
        "/jobs/revenue/versions/diff/?old=1&new=2",
        *(f"/replays/new/?job=revenue&sp={{oldest}}&step={step}" for step in STEPS),
    ],
)
def test_axe_finds_nothing_on_a_page_with_much_on_it(
    address: str, page: Page, revenue: SeededServer
):
    if "{oldest}" in address:
        page.goto("/replays/new/?job=revenue")
        oldest = page.locator("input[name=sp]").last.input_value()
        address = address.format(oldest=oldest) + CONSENTS * ("review" in address)
    live(page, address)
    assert too_wide(page) + violations(page) == []


def test_axe_finds_nothing_at_the_door(stranger_page: Page):
    page = stranger_page
    page.goto("/jobs/orders/")
    expect(page.get_by_label("Password")).to_be_visible()
    assert too_wide(page) + violations(page) == []


def test_graph_list_and_inspector_agree_and_the_address_keeps_it(page: Page):
    live(page, "/jobs/orders/")
    expect(page.locator("#insp h2")).to_have_text("enrich-join")  # the one with most to do
    page.locator("#graph .nd", has_text="fx-convert").click()
    expect(page.locator("#ops tr[aria-selected=true]")).to_contain_text("fx-convert")
    expect(page.locator("#insp h2")).to_have_text("fx-convert")
    page.reload()
    expect(page.locator("#graph .nd[aria-pressed=true]")).to_contain_text("fx-convert")


def test_another_plan_is_laid_out_anew_and_said_so(page: Page, revenue: SeededServer):
    live(page, "/jobs/revenue/")
    nodes, rows = page.locator("#graph .nd"), page.locator("#ops tbody tr")
    expect(nodes).to_have_count(2)
    nodes.last.click()
    chosen = page.locator("#insp h2").inner_text()
    page.locator("#lens").get_by_role("button", name="State").click()
    revenue.tell("replan")
    revenue.tick()
    expect(page.locator(".toast")).to_contain_text("2 vertices before, 3 now")
    expect(nodes).to_have_count(3)
    expect(nodes.last).to_contain_text("audit")
    expect(rows).to_have_count(3)
    expect(page.locator("#graph path.ah")).to_have_count(2)
    expect(page.locator("#insp h2")).to_have_text(chosen)
    expect(page.locator("#graph .nd[aria-pressed=true]")).to_contain_text(chosen)
    expect(page.locator("#lens [aria-pressed=true]")).to_have_text("State")
    rate = rows.first.locator("td").nth(2)
    expect(rate).not_to_have_text("–")
    rows.last.locator(".name").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/op/*/")


def test_what_holds_the_job_back_is_marked(page: Page):
    live(page, "/jobs/orders/")
    join = page.locator("#graph .nd", has_text="enrich-join")
    expect(join.locator(".tag")).to_have_text(["bottleneck", "skew 3.8×"])
    expect(page.locator("#graph .nd", has_text="parse").first).to_contain_text("waiting")


@pytest.mark.parametrize(
    ("lens", "shown"), [("Watermark", "2m 28s"), ("Skew", "3.8×"), ("State", "245GiB")]
)
def test_a_lens_chooses_what_the_nodes_show(lens: str, shown: str, page: Page):
    live(page, "/jobs/orders/")
    page.locator("#lens").get_by_role("button", name=lens).click()
    meter = page.locator("#graph .nd", has_text="enrich-join").locator(".pc")
    expect(meter).to_have_text(shown)


def test_a_tick_changes_figures_and_moves_nothing(page: Page, seeded: SeededServer):
    live(page, "/jobs/orders/")
    expect(page.locator("#insp .dist svg")).to_be_visible()
    expect(page.locator("#charts canvas")).to_have_count(4)
    rate = page.locator("#ops tr", has_text="payments").locator("td").nth(2)
    before, places = rate.inner_text(), page.evaluate(PLACES)
    page.evaluate(WATCH_SHIFTS)
    seeded.tick(2)
    expect(rate).not_to_have_text(before)
    assert page.evaluate("window.shifted") < 0.001
    assert page.evaluate(PLACES) == places


PLACES = "() => [...document.querySelectorAll('#graph .nd')].map(n => n.style.left + n.style.top)"
WATCH_SHIFTS = """() => {
    window.shifted = 0;
    new PerformanceObserver(list => { for (const one of list.getEntries()) shifted += one.value; })
        .observe({ type: 'layout-shift' });
}"""


def test_a_lost_socket_makes_the_page_stale_and_it_comes_back(page: Page, seeded: SeededServer):
    sockets = []
    page.route_web_socket(
        "**/ws/", lambda route: sockets.append((route, route.connect_to_server()))
    )
    page.clock.install()
    live(page, "/jobs/orders/")
    route, server = sockets[-1]
    server.on_message(lambda message: None)  # the line is dead, and nobody has noticed
    page.clock.run_for(STALE_AFTER_MS)
    pill = page.locator("[data-live-pill]")
    expect(pill).to_have_attribute("data-s", "stale")
    expect(pill).to_contain_text("Reconnecting, data from")
    server.on_message(route.send)
    seeded.tick()
    expect(pill).to_have_attribute("data-s", "live")


def test_a_socket_that_comes_back_goes_on_where_it_was_and_a_gap_asks_for_everything(
    page: Page, seeded: SeededServer
):
    asked: list[dict[str, int | None]] = []
    lines = []

    def connect(route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        lines.append(route)

        def pass_on(message: str | bytes) -> None:
            told = json.loads(message)
            asked.append(told["topics"] if told["op"] == "sub" else {})
            server.send(message)

        route.on_message(pass_on)

    page.route_web_socket("**/ws/", connect)
    live(page, "/jobs/orders/")
    rate = page.locator("[data-b='job.1 in rate']")
    before = rate.inner_text()
    seeded.tick()
    expect(rate).not_to_have_text(before)
    assert asked[0]["job.1"] is None
    known = len(asked)
    lines[-1].close()
    until(page, lambda: len(asked) > known)
    assert isinstance(asked[known]["job.1"], int)
    far = {"k": "patch", "t": "job.1", "prev": 10**6, "seq": 10**6 + 1, "d": {"in": 1}}
    lines[-1].send(json.dumps(far))
    until(page, lambda: asked[-1] == {"job.1": None})
    seeded.tick()
    expect(page.locator("[data-live-pill]")).to_have_attribute("data-s", "live")
    expect(rate).not_to_have_text("1/s")


def until(page: Page, holds: Callable[[], bool]) -> None:
    """Look until something holds."""
    for _ in range(PATIENCE_MS // LOOK_MS):
        if holds():
            return
        page.wait_for_timeout(LOOK_MS)
    pytest.fail("it never came to that")


PATIENCE_MS, LOOK_MS = 60_000, 50


def test_a_plain_wheel_scrolls_the_page_and_with_control_it_zooms_the_graph(page: Page):
    live(page, "/jobs/orders/")
    graph = page.locator("#graph")
    expect(graph.locator(".nd")).to_have_count(11)
    graph.scroll_into_view_if_needed()
    graph.hover(position={"x": 20, "y": 20})
    scale, top = graph.locator(".gr-in").evaluate(TRANSFORM), page.evaluate("scrollY")
    places = page.evaluate(PLACES)
    page.mouse.wheel(0, 120)
    until(page, lambda: page.evaluate("scrollY") != top)
    assert graph.locator(".gr-in").evaluate(TRANSFORM) == scale
    graph.hover(position={"x": 20, "y": 20})
    top = page.evaluate("scrollY")
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    until(page, lambda: graph.locator(".gr-in").evaluate(TRANSFORM) != scale)
    assert page.evaluate("scrollY") == top
    assert page.evaluate(PLACES) == places


TRANSFORM = "node => node.style.transform"


def test_the_palette_finds_an_operator_and_goes_there(page: Page):
    live(page, "/jobs/")
    page.keyboard.press("Control+k")
    page.keyboard.type("enrich")
    expect(page.get_by_role("option").first).to_contain_text("operator of orders")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/op/{JOIN.id}/")
    expect(page.locator("#spread svg")).to_be_visible()


def test_enter_in_the_palette_waits_for_the_answer_to_what_was_typed(page: Page):
    live(page, "/jobs/")
    held: list[Route] = []
    page.route("**/jump.json?q=enrich", lambda route: held.append(route))
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_be_visible()
    with page.expect_request("**/jump.json?q=enrich"):
        page.keyboard.type("enrich")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    held[0].continue_()
    page.wait_for_url(f"**/op/{JOIN.id}/")


def test_g_and_a_letter_go_where_the_navigation_says_and_can_be_switched_off(page: Page):
    page.clock.set_fixed_time(START_MS / 1000)  # the second key comes in time on any machine
    live(page, "/jobs/orders/")
    page.keyboard.press("?")
    help_list = page.get_by_role("dialog")
    expect(help_list).to_contain_text("Go to cluster")
    help_list.get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    expect(help_list).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("j")
    assert page.url.endswith("/jobs/orders/") or "op=" in page.url
    page.keyboard.press("Control+k")
    page.get_by_role("option", name="Keyboard shortcuts").click()
    page.get_by_role("checkbox").check()
    page.keyboard.press("Escape")
    expect(help_list).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/jobs/")


def test_a_checkpoint_is_pinned_and_let_go(page: Page):
    live(page, "/jobs/orders/checkpoints/")
    newest = page.locator("#pinned h2").inner_text()  # another test may have taken a savepoint
    page.locator(".ckbars i").nth(19).click()
    expect(page.locator("#pinned h2")).to_have_text("Checkpoint 18320")
    expect(page.locator("#pinned .note")).to_contain_text("Expired.")
    expect(page.locator("#pinned")).to_contain_text("not from 8, 9, 10")
    page.get_by_role("link", name="Follow newest").click()
    expect(page.locator("#pinned h2")).to_have_text(newest)
