"""Routes that look into snapshots: what they take, and what they answer."""

from __future__ import annotations

import httpx
import pytest

from engine.checkpoint.inspection.questions import StateQuestion
from engine.rest.app import create_app
from engine.rest.client import EngineClient, NotFound, Refused
from engine.testing.fake_service import FakeService
from engine.testing.in_memory import InMemory

TRIGGER = "deadbeefdeadbeefdeadbeefdeadbeef"
VERIFICATIONS = "/headwater/savepoints/verifications"


@pytest.fixture
def client(service: FakeService) -> EngineClient:
    return EngineClient(transport=InMemory(create_app(service)))


async def taken(http: httpx.AsyncClient, job: str) -> str:
    await http.post(f"/jobs/{job}/savepoints", json={"triggerId": TRIGGER})
    await http.get(f"/jobs/{job}/savepoints/{TRIGGER}")
    poll = await http.get(f"/jobs/{job}/savepoints/{TRIGGER}")
    return str(poll.json()["operation"]["location"])


async def test_a_verification_has_the_form_of_other_operations(
    http: httpx.AsyncClient, job: str
) -> None:
    body = {"path": await taken(http, job), "triggerId": TRIGGER}
    triggered = await http.post(VERIFICATIONS, json=body)
    assert (triggered.status_code, triggered.json()) == (202, {"request-id": TRIGGER})
    first = (await http.get(f"{VERIFICATIONS}/{TRIGGER}")).json()
    assert first["status"] == {"id": "IN_PROGRESS"}
    assert first["operation"] is None
    last = (await http.get(f"{VERIFICATIONS}/{TRIGGER}")).json()
    assert last["status"] == {"id": "COMPLETED"}
    assert last["operation"]["whole"] is True
    assert last["progress"]["done"] == last["progress"]["total"]


async def test_both_prefixes_look_into_snapshots(http: httpx.AsyncClient, job: str) -> None:
    path = await taken(http, job)
    answer = await http.get("/v1/headwater/savepoints", params={"path": path})
    assert answer.json()["path"] == path


@pytest.mark.parametrize(
    ("route", "body", "sentence"),
    [
        ("read", {"path": "/s"}, "field operator is missing from the request body"),
        ("verifications", {}, "field path is missing from the request body"),
        ("comparisons", {"left": "/l"}, "field right is missing from the request body"),
        (
            "read",
            {"path": "/s", "operator": "o", "state": "s", "limit": 10_001},
            "field limit must be at most 10000: got 10001",
        ),
        (
            "comparisons",
            {"left": "/l", "right": "/r", "examples": -1},
            "field examples must be at least 0: got -1",
        ),
    ],
)
async def test_a_wrong_question_is_refused_in_a_sentence(
    route: str, body: dict[str, object], sentence: str, http: httpx.AsyncClient
) -> None:
    answer = await http.post(f"/headwater/savepoints/{route}", json=body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0].startswith(sentence)


async def test_that_there_is_no_snapshot_has_a_status_of_its_own(http: httpx.AsyncClient) -> None:
    for answer in (
        await http.post("/headwater/savepoints/verifications", json={"path": "/none"}),
        await http.get("/headwater/savepoints", params={"path": "/none"}),
    ):
        assert answer.status_code == 410
        assert answer.json()["errors"][0].startswith("snapshot is not there: no folder /none")


def test_the_client_raises_what_the_routes_refuse(client: EngineClient) -> None:
    with pytest.raises(Refused, match="snapshot is not there"):
        client.read_state("/none", StateQuestion("count", "counts"))
    with pytest.raises(NotFound, match="there is no verification operation"):
        client.verification(TRIGGER)
