"""The seeded server in a process of its own, and a window that is signed in to it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from playwright.sync_api import Browser, BrowserContext

from engine.testing.cluster import PATIENCE_S

CHECKOUT = Path(__file__).resolve().parents[1]


@dataclass
class SeededServer:
    """`tests/seeded_server.py`; time passes when `tick` says so."""

    process: subprocess.Popen[str]
    url: str
    session: str
    """Of mara, who may do everything."""
    member: str
    """The session of noor, an operator."""

    def tick(self, seconds: int = 1) -> None:
        """Let seconds pass; each is one look of the collector."""
        for _ in range(seconds):
            self.tell("tick")

    def tell(self, what: str) -> None:
        """One of the server's commands."""
        self._input.write(f"{what}\n")
        self._input.flush()
        assert self._output.readline() == "DONE\n"

    def window(
        self,
        chromium: Browser,
        width: int = 1440,
        height: int = 900,
        session: str = "",
        timezone: str = "UTC",
    ) -> BrowserContext:
        """A window of somebody who may do everything, or of the one whose session it is."""
        context = chromium.new_context(
            base_url=self.url,
            viewport={"width": width, "height": height},
            reduced_motion="reduce",
            color_scheme="light",
            timezone_id=timezone,
        )
        context.add_cookies(
            [{"name": "headwater_session", "value": session or self.session, "url": self.url}]
        )
        return context

    def stop(self) -> None:
        """End of input ends it."""
        self._input.close()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._output.close()

    @property
    def _input(self) -> IO[str]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def _output(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout


def start(home: Path) -> SeededServer:
    """Start one on free ports, and wait until it is ready."""
    (home / "static").mkdir()
    process = subprocess.Popen(
        [sys.executable, "tests/seeded_server.py"],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"HEADWATER_HOME": str(home), "HEADWATER_SECRET_KEY": "seeded"},
    )
    assert process.stdout is not None
    word, url, session, member = process.stdout.readline().split()
    assert word == "READY"
    return SeededServer(process, url, session, member)
