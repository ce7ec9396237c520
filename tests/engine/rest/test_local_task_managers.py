"""Task managers started, stopped and left lost over HTTP."""

from __future__ import annotations

import httpx

PATH = "/headwater/taskmanagers"


async def test_one_is_started_and_stopped(http: httpx.AsyncClient) -> None:
    started = await http.post(PATH, json={})
    assert (started.status_code, started.json()) == (202, {"name": "tm-3"})
    names = [one["name"] for one in (await http.get(f"/v1{PATH}")).json()["taskmanagers"]]
    assert names == ["tm-1", "tm-2", "tm-3"]
    assert (await http.delete(f"{PATH}/tm-3")).status_code == 202
    again = await http.delete(f"{PATH}/tm-3")
    assert again.status_code == 404
    assert again.json() == {"errors": ["no task manager is registered under tm-3"]}


async def test_lost_ones_are_left_lost_when_told(http: httpx.AsyncClient) -> None:
    assert (await http.get(PATH)).json()["respawn"] is True
    assert (await http.patch(PATH, json={"respawn": False})).json()["respawn"] is False


async def test_a_wish_must_be_said(http: httpx.AsyncClient) -> None:
    refused = await http.patch(PATH, json={})
    assert refused.status_code == 400
    assert refused.json() == {
        "errors": ["field respawn is missing from the request body; pass true or false"]
    }
