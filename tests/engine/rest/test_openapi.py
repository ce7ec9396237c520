"""The OpenAPI document tells of every route, and every answer is as it says."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from starlette.routing import Mount, Route

from engine.rest.described import DESCRIBED
from engine.rest.openapi import document
from engine.testing.fake_service import FakeService
from engine.testing.fake_values import SOURCE_ID, WINDOW_ID
from flink_captures import capture
from flink_routes import GETS
from json_schemas import problems
from openapi_answers import APP, DOCUMENT, KNOWN, answered, told

TRIGGER = "deadbeefdeadbeefdeadbeefdeadbeef"


def served(routes: list[Any], prefix: str = "") -> list[tuple[str, Route]]:
    found = []
    for route in routes:
        if isinstance(route, Mount):
            found += served(list(route.routes), prefix + route.path)
        else:
            found.append((prefix, route))
    return found


ROUTES = served(list(APP.routes))


@pytest.mark.parametrize(
    ("prefix", "route"), ROUTES, ids=[f"{prefix}{route.path}" for prefix, route in ROUTES]
)
def test_every_route_is_told_of_bare_and_versioned(prefix: str, route: Route) -> None:
    assert (prefix or "/") in [server["url"] for server in DOCUMENT["servers"]]
    path = route.path.replace(":path}", "}")
    for method in (route.methods or set()) - {"HEAD"}:
        operation = DOCUMENT["paths"][path][method.lower()]
        assert operation["summary"]
        names = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
        assert names == set(route.param_convertors)
    assert route.endpoint in DESCRIBED, "say in engine/rest/described.py what it takes and gives"


def test_nothing_is_told_of_that_is_not_served() -> None:
    assert DESCRIBED.keys() == {route.endpoint for _, route in ROUTES}
    paths = {route.path.replace(":path}", "}") for _, route in ROUTES}
    assert DOCUMENT["paths"].keys() == paths


def test_every_operation_has_a_name_of_its_own_and_every_reference_leads_somewhere() -> None:
    operations = [one for path in DOCUMENT["paths"].values() for one in path.values()]
    names = [one["operationId"] for one in operations]
    assert len(set(names)) == len(names)
    referred = {str(found) for found in references(DOCUMENT)}
    assert referred == {f"#/components/schemas/{name}" for name in KNOWN}


def references(value: Any) -> list[Any]:
    match value:
        case dict():
            inner = [found for part in value.values() for found in references(part)]
            return [value["$ref"], *inner] if "$ref" in value else inner
        case list():
            return [found for part in value for found in references(part)]
        case _:
            return []


@pytest.mark.parametrize("name", GETS)
async def test_an_answer_is_as_told_and_flinks_own_too(
    name: str, http: httpx.AsyncClient, job: str, artifact: str
) -> None:
    path = GETS[name].format(job=job, source=SOURCE_ID, window=WINDOW_ID, artifact=artifact)
    operation = told(path, "GET")
    assert answered(operation, await http.get(path)) == []
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert list(problems(capture(name), schema, KNOWN, strict=False)) == []


ADDITIONS = (
    "/headwater/capabilities",
    "/headwater/openapi.json",
    "/headwater/jobs/{job}/progress",
    "/headwater/jobs/{job}/plan",
    "/headwater/jobs/{job}/statistics?window=2",
    "/headwater/jobs/{job}/read-limits",
    "/headwater/jobs/{job}/state/daily/slices?key=AA",
    "/headwater/taskmanagers",
    "/jobs/{job}/resource-requirements",
)


@pytest.mark.parametrize("path", ADDITIONS)
async def test_our_additions_answer_as_told(path: str, http: httpx.AsyncClient, job: str) -> None:
    path = path.format(job=job)
    assert answered(told(path, "GET"), await http.get(path)) == []


async def test_commands_take_and_answer_what_is_told(
    http: httpx.AsyncClient, job: str, artifact: str
) -> None:
    saved = f"/jobs/{job}/savepoints"
    for path, body in (
        (f"/jars/{artifact}/run", {"programArgsList": ["a"], "parallelism": 1, "jobId": TRIGGER}),
        (f"/jobs/{job}/checkpoints", {"checkpointType": "FULL", "triggerId": None}),
        (saved, {"target-directory": "/s", "cancel-job": False, "triggerId": TRIGGER}),
        (f"/jobs/{job}/stop", {"targetDirectory": None, "drain": False}),
    ):
        operation = told(path, "POST")
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert list(problems(body, schema, KNOWN, strict=True)) == []
        assert answered(operation, await http.post(path, json=body)) == []
    polls = [await http.get(f"{saved}/{TRIGGER}") for _ in range(2)]
    assert [answered(told(f"{saved}/{TRIGGER}", "GET"), poll) for poll in polls] == [[], []]
    snapshot = polls[1].json()["operation"]["location"]
    whole = await http.get(f"/headwater/savepoints?path={snapshot}")
    assert answered(told("/headwater/savepoints", "GET"), whole) == []
    for topic, body in (
        ("savepoints/verifications", {"path": snapshot, "triggerId": TRIGGER}),
        ("savepoints/comparisons", {"left": snapshot, "right": snapshot, "triggerId": "a" * 32}),
        ("savepoints/read", {"path": snapshot, "operator": "daily", "state": "slices"}),
        ("preflight", {"artifact": artifact, "savepointPath": snapshot}),
    ):
        path = f"/headwater/{topic}"
        operation = told(path, "POST")
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert list(problems(body, schema, KNOWN, strict=True)) == []
        assert answered(operation, await http.post(path, json=body)) == []
    for topic, trigger in (("verifications", TRIGGER), ("comparisons", "a" * 32)):
        path = f"/headwater/savepoints/{topic}/{trigger}"
        for _ in range(2):
            assert answered(told(path, "GET"), await http.get(path)) == []


async def test_failures_and_the_end_of_a_job_are_as_told(
    http: httpx.AsyncClient, job: str, service: FakeService
) -> None:
    service.fail(job, "row 7 is no number")
    for topic in ("exceptions", "execution-result", "checkpoints"):
        path = f"/jobs/{job}/{topic}"
        assert answered(told(path, "GET"), await http.get(path)) == []
    refused = await http.get("/jobs/x")
    schema = told("/jobs/x", "GET")["responses"]["default"]["content"]["application/json"]["schema"]
    assert list(problems(refused.json(), schema, KNOWN, strict=True)) == []


def test_a_route_without_a_description_is_told_of_all_the_same() -> None:
    async def endpoint() -> None:
        """Something new."""

    made = document([Route("/new/{id}", endpoint)])
    assert made["paths"]["/new/{id}"]["get"]["summary"] == "Something new."
