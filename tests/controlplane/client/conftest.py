"""The command line of a control plane, against the real API."""

from __future__ import annotations

import httpx
import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.tokens import issue_token
from controlplane.client import main
from controlplane.client.connection import Control
from controlplane.operations.models import Operation


@pytest.fixture
def token(alice):
    return issue_token(alice, "cli", "operate", 30, None, timezone.now())[1]


@pytest.fixture
def answers(drive):
    """The platform behind a transport; its workers are at work between two requests."""
    browser = Client(raise_request_exception=False)

    def handle(request: httpx.Request) -> httpx.Response:
        headers = {
            name: request.headers[name]
            for name in ("authorization", "idempotency-key")
            if name in request.headers
        }
        answer = browser.generic(
            request.method,
            request.url.raw_path.decode(),
            request.read(),
            request.headers.get("content-type", ""),
            headers=headers,
        )
        for operation in Operation.objects.filter(state="pending"):
            drive(operation)
        return httpx.Response(answer.status_code, content=answer.content)

    return handle


@pytest.fixture
def headwater(token, answers, capsys):
    """Runs a command line; gives its exit code, what it printed, and what went wrong."""

    def run(*words, handle=answers):
        def connect(url, token):
            return Control(url, token, httpx.MockTransport(handle))

        code = main(["--control", "http://control", *words], connect, {"HEADWATER_TOKEN": token})
        told = capsys.readouterr()
        return code, told.out, told.err

    return run
