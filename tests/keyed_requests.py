"""Requests with one idempotency key against a database file, while their engine takes its time.

    python tests/keyed_requests.py      told as JSON: what was answered, and what came of it

one process    two requests at once, and another write while the engine is asked
another one    dies while the engine is asked; the request is sent again

Needs    a folder of its own in HEADWATER_HOME.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "platform"), str(CHECKOUT / "tests")]
os.environ["DJANGO_SETTINGS_MODULE"] = "controlplane.settings"

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.utils import timezone  # noqa: E402

from controlplane.access.tokens import issue_token  # noqa: E402
from controlplane.api.models import KeptAnswer  # noqa: E402
from controlplane.audit.models import AuditEntry  # noqa: E402
from controlplane.backends.models import Cluster  # noqa: E402
from engine.testing.fake_service import FakeService  # noqa: E402
from loopback_engine import served  # noqa: E402

START = "clusters/lab/task-managers"
PATIENCE_S = 20.0


class SlowEngine(FakeService):
    """Starts a task manager when it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Semaphore(0)
        self.times = 0
        self.go = threading.Event()

    async def start_task_manager(self, name: str | None) -> str:
        self.times += 1
        self.asked.release()
        await asyncio.to_thread(self.go.wait)
        return await super().start_task_manager(name)


class MortalEngine(FakeService):
    """Takes the process of whoever asks with it."""

    async def start_task_manager(self, name: str | None) -> str:
        os._exit(9)


def send(token: str, path: str, key: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
    """A request of a thread of its own, with its own connection."""
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
    client = Client(raise_request_exception=False, SERVER_NAME="127.0.0.1")
    address, text = f"/api/v1/{path}", json.dumps(body or {})
    answer = client.post(address, text, "application/json", headers=headers)
    connection.close()
    return answer.status_code, answer.json()


def die(token: str) -> None:
    """Ask an engine that ends this process."""
    with served(MortalEngine()) as url:
        Cluster.objects.filter(name="lab").update(url=url)
        send(token, START, "second")


def main() -> None:
    """Everything, in order."""
    call_command("migrate", verbosity=0)
    root = User.objects.create_superuser("root")
    token = issue_token(root, "ci", "admin", 30, None, timezone.now())[1]
    engine = SlowEngine()
    told: dict[str, Any] = {}
    with served(engine) as url, ThreadPoolExecutor(4) as threads:
        Cluster.objects.create(name="lab", url=url)
        both = [threads.submit(send, token, START, "first") for _ in range(2)]
        assert engine.asked.acquire(timeout=PATIENCE_S)
        told["meanwhile"] = threads.submit(send, token, "teams", "else", {"name": "else"}).result(
            PATIENCE_S
        )[0]
        told["asked still"] = not any(one.done() for one in both)
        engine.go.set()
        told["both"] = [one.result(PATIENCE_S) for one in both]
        told["asked"] = engine.times
        command = [sys.executable, __file__, token]
        told["died"] = subprocess.run(command, check=False).returncode
        told["after its death"] = [count(), KeptAnswer.objects.filter(status=0).count()]
        KeptAnswer.objects.filter(status=0).update(held_until=timezone.now())
        Cluster.objects.filter(name="lab").update(url=url)
        told["again"] = [send(token, START, "second") for _ in range(2)]
    told["written"] = count()
    print(json.dumps(told))


def count() -> int:
    """How many task managers were started, as the audit log says."""
    return AuditEntry.objects.filter(action="task_manager.start").count()


if __name__ == "__main__":
    assert "sqlite" in settings.DATABASES["default"]["ENGINE"]
    die(sys.argv[1]) if len(sys.argv) > 1 else main()
