"""Who may speak to an engine: every route asks for the token, and tells nobody what it is."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from starlette.routing import Mount, Route

from engine.errors import ConfigError
from engine.rest.app import create_app
from engine.rest.tokens import FILE_VARIABLE, VARIABLE, check_address, token_of
from engine.testing.fake_service import FakeService

TOKEN = "correct-horse-battery-staple"
ELSEWHERE = "http://engine.example:8081"


def requests() -> list[tuple[str, str]]:
    """Every method and path that the application serves, and some that it does not."""
    found = [("GET", "/no/such/route"), ("GET", "/v1"), ("POST", "/")]
    for route in create_app(FakeService()).routes:
        inner = route.routes if isinstance(route, Mount) else [route]
        prefix = route.path if isinstance(route, Mount) else ""
        for one in inner:
            assert isinstance(one, Route)
            found += [(method, prefix + one.path) for method in sorted(one.methods or ())]
    return found


async def test_no_route_answers_without_the_token() -> None:
    transport = httpx.ASGITransport(create_app(FakeService(), token=TOKEN))
    wrong = ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"})
    async with httpx.AsyncClient(transport=transport, base_url=ELSEWHERE) as http:
        walked = requests()
        assert len(walked) > 100
        for method, path in walked:
            for headers in wrong:
                answer = await http.request(method, path, headers=headers)
                assert answer.status_code == 401, (method, path)
                assert answer.headers["WWW-Authenticate"] == "Bearer"
                assert TOKEN not in answer.text


async def test_the_scheme_is_read_in_any_case() -> None:
    transport = httpx.ASGITransport(create_app(FakeService(), token=TOKEN))
    async with httpx.AsyncClient(transport=transport, base_url=ELSEWHERE) as http:
        good = await http.get("/overview", headers={"Authorization": f"bearer {TOKEN}"})
        odd = await http.get("/overview", headers={b"Authorization": b"Bearer \xff\xfe"})
    assert (good.status_code, odd.status_code) == (200, 401)


@pytest.mark.parametrize("token", [None, TOKEN])
async def test_a_websocket_is_closed(token: str | None) -> None:
    sent = []

    async def send(message: object) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/jobs", "headers": []}
    await create_app(FakeService(), token=token)(scope, None, send)  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "engine.example"])
def test_an_address_that_others_reach_needs_a_token(host: str) -> None:
    check_address(host, TOKEN)
    with pytest.raises(ConfigError, match="is reached by other machines, and no token guards it"):
        check_address(host, None)
    with pytest.raises(ConfigError, match=r"token is too short .*: got 6 characters") as refused:
        check_address(host, "secret")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_loopback_needs_none(host: str) -> None:
    check_address(host, None)


def test_a_token_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert token_of({FILE_VARIABLE: str(tmp_path / "token")}) == TOKEN
    assert token_of({VARIABLE: "other", FILE_VARIABLE: str(tmp_path / "token")}) == "other"
    assert token_of({}) is None


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "cannot be read: No such file"), (b"", "is empty"), (b"\xff", "cannot be read: it is")],
)
def test_a_token_file_that_holds_none_is_one_sentence(
    tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with pytest.raises(ConfigError, match=f"token file .*/token {sentence}"):
        token_of({FILE_VARIABLE: str(tmp_path / "token")})


def test_a_token_that_no_header_can_carry_is_refused_without_being_shown() -> None:
    with pytest.raises(ConfigError, match="without spaces") as refused:
        token_of({VARIABLE: "a secret"})
    assert "a secret" not in str(refused.value)
