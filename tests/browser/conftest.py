"""The whole platform in a home of its own, and a Chromium that is signed in to it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

import seeded_process
from engine.testing.cluster import PATIENCE_S
from free_ports import free_ports
from seeded_process import SeededServer

CHECKOUT = Path(__file__).resolve().parents[2]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
]
ENVIRONMENT = {  # a shell's: without what the tests' own settings need
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("HEADWATER_", "DJANGO_", "PYTEST_"))
} | {"HEADWATER_DEMO_SPEED": "14400"}  # the year lasts longer than the slowest machine's tests
PATIENCE_MS = 1_000 * PATIENCE_S
expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Platform:
    """One `manage.py up --demo`."""

    home: Path
    process: subprocess.Popen[str]
    login_url: str = ""
    said: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where the dashboard is."""
        return self.login_url.split("/login/")[0]

    def wait_until_ready(self) -> None:
        """Read what it says up to the login link."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if line.startswith("READY "):
                self.login_url = line.split()[1]
                return
        pytest.fail(f"the platform did not start; it said:\n{''.join(self.said)}")

    def worker_of(self, name: str) -> int:
        """A process that runs subtasks of a job, as the engine tells."""
        jobs = self._engine("/jobs/overview")["jobs"]
        job_id = next(job["jid"] for job in jobs if job["name"] == name)
        workers = [
            worker["pid"]
            for manager in self._engine("/taskmanagers")["taskmanagers"]
            for worker in manager["headwater"]["workers"]
            if worker["job"] == job_id
        ]
        return workers[0]

    def _engine(self, path: str) -> dict[str, Any]:
        engine = json.loads((self.home / "engine" / "jobmanager.json").read_text())["url"]
        asked = httpx.get(engine + path, trust_env=False, timeout=PATIENCE_S)
        answer: dict[str, Any] = asked.raise_for_status().json()
        return answer

    def processes(self) -> list[psutil.Process]:
        """Everything that it started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def stop(self) -> None:
        """Ctrl-C, and no mercy after a while."""
        children = self.processes() if self.process.poll() is None else []
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()


@pytest.fixture(scope="session")
def platform(tmp_path_factory):
    """The platform with its demo jobs."""
    home = tmp_path_factory.mktemp("home")
    names = ("--port", "--engine-port", "--control-port")
    ports = [f"{name}={port}" for name, port in zip(names, free_ports(3), strict=True)]
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--demo", "--home", str(home), *ports],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ENVIRONMENT,
    )
    up = Platform(home, process)
    try:
        up.wait_until_ready()
        yield up
    finally:
        up.stop()


@pytest.fixture(scope="session")
def chromium():
    """One browser process; whatever is opened in it, the security policy has nothing to refuse."""
    if CHROMIUM is None:
        pytest.fail("the browser tests need Chromium: install it, or say CHROMIUM=/path/to/it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        refused = listen_for_refusals(browser)
        yield browser
        browser.close()
    assert refused == []


def listen_for_refusals(browser: Browser) -> list[str]:
    """What the policy refuses in any window that is opened from now on."""
    refused: list[str] = []
    new_context = browser.new_context

    def listening(**options: Any) -> BrowserContext:
        context = new_context(**options)
        context.on("console", heard)
        return context

    def heard(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            refused.append(message.text)

    browser.new_context = listening
    return refused


@pytest.fixture(scope="session")
def session(platform: Platform, chromium: Browser):
    """What the browser keeps after it opened the one-time link."""
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(platform.login_url)
    page.wait_for_url("**/jobs/")
    state = context.storage_state()
    context.close()
    return state


@dataclass
class Complaints:
    """What the page complained about: errors of scripts, refused content."""

    lines: list[str] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        """Collect from a page; an answer 4xx to a form is no fault of the page."""
        page.on("pageerror", lambda error: self.lines.append(f"script: {error}"))
        page.on("console", self._said)

    def _said(self, message) -> None:
        expected = "the server responded with a status of 4" in message.text
        if message.type in {"error", "warning"} and not expected:
            self.lines.append(f"{message.type}: {message.text}")


@pytest.fixture(scope="session")
def seeded(tmp_path_factory):
    """A server over seeded data, whose clock stands still."""
    server = seeded_process.start(tmp_path_factory.mktemp("seeded"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def revenue(seeded: SeededServer):
    """The seeded server with a job that can be replayed."""
    seeded.tell("revenue")
    return seeded


@pytest.fixture
def seeded_page(seeded: SeededServer, chromium: Browser):
    """A tab on the seeded server; the test fails when its scripts do."""
    with tab(seeded.window(chromium)) as page:
        yield page


@pytest.fixture
def member_page(seeded: SeededServer, chromium: Browser):
    """A tab of noor, an operator of the only team."""
    with tab(seeded.window(chromium, session=seeded.member)) as page:
        yield page


@pytest.fixture
def stranger_page(seeded: SeededServer, chromium: Browser):
    """A tab of somebody who has not signed in."""
    with tab(seeded.window(chromium, session="none")) as page:
        yield page


@contextmanager
def tab(context: BrowserContext):
    """A tab in a window of its own, which complains of nothing."""
    context.set_default_timeout(PATIENCE_MS)
    complaints, page = Complaints(), context.new_page()
    complaints.listen(page)
    yield page
    context.close()
    assert complaints.lines == []


@pytest.fixture
def context(chromium: Browser, session, platform: Platform):
    """A window that is signed in."""
    context = chromium.new_context(
        storage_state=session, base_url=platform.url, viewport={"width": 1440, "height": 900}
    )
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext):
    """A tab; the test fails when its scripts do."""
    complaints, page = Complaints(), context.new_page()
    complaints.listen(page)
    yield page
    assert complaints.lines == []
