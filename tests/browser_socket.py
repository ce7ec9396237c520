"""A page whose socket a test can speak through, beside the server.

    say(page, {"k": "patch", "t": "fleet", "d": {…}})     as if the server had said it

`prev` and `seq` are added where the page has heard of the topic. The server's own clock stands
still, so nothing comes in between.
"""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

LISTEN = """(() => {
    const Real = WebSocket;
    window.heard = {};
    window.WebSocket = class extends Real {
        constructor(...given) {
            super(...given);
            window.socket = this;
            this.addEventListener('message', event => {
                const message = JSON.parse(event.data);
                if (message.seq === undefined) return;
                heard[message.t] = message.seq;
                document.documentElement.dataset.heard = Object.keys(heard).join(' ');
            });
        }
    };
    window.say = message => {
        const prev = heard[message.t], numbered = message.k === 'html' || prev === undefined
            ? message : { ...message, prev, seq: prev + 1 };
        socket.dispatchEvent(new MessageEvent('message', { data: JSON.stringify(numbered) }));
    };
})()"""


def open_live(page: Page, address: str) -> None:
    """Open a page, and wait until its topics have been told."""
    page.add_init_script(LISTEN)
    page.goto(address)
    expect(page.locator("[data-live-pill]")).to_have_attribute("data-s", "live")
    # No function to wait for: the policy of the page forbids to evaluate one again and again.
    expect(page.locator("html")).to_have_attribute("data-heard", re.compile("fleet|job|replay"))


def say(page: Page, message: dict[str, Any]) -> None:
    """Let the page hear it."""
    page.evaluate("message => say(message)", message)
