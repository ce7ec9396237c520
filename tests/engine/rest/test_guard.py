"""Who may send what: an upload is code that runs, so the door is guarded."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from engine.rest.app import create_app
from engine.testing.fake_service import FakeService

URL = "http://127.0.0.1:8081"


def client(token: str | None = None, limit: int = 1_000, url: str = URL) -> httpx.AsyncClient:
    app = create_app(FakeService(), token=token, max_upload_bytes=limit)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=url)


@pytest.mark.parametrize("url", [URL, "http://localhost:8081", "http://[::1]:8081"])
async def test_loopback_names_are_answered(url: str) -> None:
    async with client(url=url) as http:
        assert (await http.get("/overview")).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8081", "127.0.0.1.evil.example"])
async def test_another_name_for_this_address_is_refused(host: str) -> None:
    async with client() as http:
        answer = await http.get("/overview", headers={"Host": host})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_a_page_of_another_site_cannot_upload(headers: dict[str, str]) -> None:
    files = {"jarfile": ("job.py", b"pass")}
    async with client() as http:
        answer = await http.post("/jars/upload", files=files, headers=headers)
        assert answer.status_code == 403
        assert (await http.get("/jars")).json()["files"] == []


async def test_a_page_of_our_own_is_answered() -> None:
    headers = {"Origin": URL, "Sec-Fetch-Site": "same-origin"}
    async with client() as http:
        assert (await http.get("/overview", headers=headers)).status_code == 200


async def test_with_a_token_only_its_bearer_is_answered() -> None:
    async with client(token="secret", url="http://engine.example") as http:
        assert (await http.get("/overview")).status_code == 401
        for given in ("Bearer wrong", "secret", "Basic secret"):
            refused = await http.get("/overview", headers={"Authorization": given})
            assert refused.status_code == 401
        good = await http.get("/overview", headers={"Authorization": "Bearer secret"})
        assert good.status_code == 200


async def test_an_upload_over_the_limit_is_refused() -> None:
    async with client(limit=300) as http:
        answer = await http.post("/jars/upload", files={"jarfile": ("job.py", b"x" * 1_000)})
        small = await http.post("/jars/upload", files={"jarfile": ("job.py", b"x")})
    assert answer.status_code == 413
    assert "at most 300 bytes" in answer.json()["errors"][0]
    assert small.status_code == 200


async def test_a_body_without_a_length_is_counted() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * 2**19

    async with client() as http:
        answer = await http.post("/jars/job.py/run", content=chunks())
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("job.py", "job.py"),
        ("../../etc/job.py", "job.py"),
        ("..\\..\\job.py", "job.py"),
        ("/abs/job v2.py", "job v2.py"),
    ],
)
async def test_a_file_name_is_only_its_last_segment(given: str, kept: str) -> None:
    async with client() as http:
        await http.post("/jars/upload", files={"jarfile": (given, b"pass")})
        assert [file["name"] for file in (await http.get("/jars")).json()["files"]] == [kept]


@pytest.mark.parametrize("name", ["job.jar", "..", ".py", ".hidden.py", "a\x00b.py", "é.py", ""])
async def test_a_file_name_that_is_not_a_job_file_is_refused(name: str) -> None:
    async with client() as http:
        answer = await http.post("/jars/upload", files={"jarfile": (name, b"pass")})
    assert answer.status_code == 400
    assert len(answer.json()["errors"]) == 1


async def test_two_files_are_refused() -> None:
    files = [("jarfile", ("a.py", b"")), ("jarfile", ("b.py", b""))]
    async with client() as http:
        answer = await http.post("/jars/upload", files=files)
    assert answer.status_code == 400
